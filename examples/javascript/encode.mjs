// Sentence vectors in Node from a folder that `isoglot export MODEL --format onnx --output FOLDER` wrote.
//
//     node encode.mjs FOLDER "Guten Morgen!" "Good morning!"     vectors as JSON, one array a line
//     node encode.mjs FOLDER < sentences.txt                     the same for each line of a file
//
// In a browser, import onnxruntime-web instead of onnxruntime-node, and fetch the files instead of reading them.

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Tokenizer } from "@huggingface/tokenizers";
import * as ort from "onnxruntime-node";

/** Open a model folder. */
export async function load(folder) {
  const json = async (name) => JSON.parse(await readFile(`${folder}/${name}`, "utf8"));
  const settings = await json("config_sentence_transformers.json");
  const special = await json("tokenizer_config.json");
  const tokenizer = new Tokenizer(await json("tokenizer.json"), special);
  return {
    session: await ort.InferenceSession.create(`${folder}/onnx/model_quantized.onnx`),
    tokenizer,
    pad: tokenizer.token_to_id(special.pad_token) ?? 0,
    maxLength: (await json("sentence_bert_config.json")).max_seq_length,
    prompts: settings.prompts,
    prompt: settings.prompts[settings.default_prompt_name] ?? "", // put before every text
    normalizes: (await json("modules.json")).some((module) => module.type.endsWith(".Normalize")),
  };
}

/** Token ids of a text; of a long one the first, and the special token at the end. */
export function tokenize(model, sentence, prompt = model.prompt) {
  const { ids } = model.tokenizer.encode(prompt + sentence.trim());
  return ids.length <= model.maxLength ? ids : [...ids.slice(0, model.maxLength - 1), ids.at(-1)];
}

/** An array of vectors (Float32Array) of texts, `batch` at a time. */
export async function encode(model, sentences, { prompt = model.prompt, batch = 32 } = {}) {
  const vectors = [];
  for (let start = 0; start < sentences.length; start += batch) {
    const rows = sentences.slice(start, start + batch).map((sentence) => tokenize(model, sentence, prompt));
    const shape = [rows.length, Math.max(...rows.map((row) => row.length))];
    const ids = new BigInt64Array(shape[0] * shape[1]).fill(BigInt(model.pad));
    const mask = new BigInt64Array(ids.length); // 1 for tokens, 0 for padding
    rows.forEach((row, place) => {
      ids.set(row.map(BigInt), place * shape[1]);
      mask.fill(1n, place * shape[1], place * shape[1] + row.length);
    });
    const inputs = { input_ids: new ort.Tensor("int64", ids, shape), attention_mask: new ort.Tensor("int64", mask, shape) };
    const { sentence_embedding: found } = await model.session.run(inputs, ["sentence_embedding"]);
    const width = found.dims[1];
    for (let row = 0; row < shape[0]; row++) {
      const vector = found.data.slice(row * width, (row + 1) * width);
      vectors.push(model.normalizes ? unit(vector) : vector);
    }
  }
  return vectors;
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return length > 0 ? vector.map((value) => value / length) : vector;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, ...given] = process.argv.slice(2);
  const sentences = given.length ? given : (await text(process.stdin)).split("\n").filter(Boolean);
  for (const vector of await encode(await load(folder), sentences)) console.log(JSON.stringify([...vector]));
}
