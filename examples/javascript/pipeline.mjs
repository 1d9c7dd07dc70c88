// The same vectors with transformers.js, which finds the files of the folder itself.
//
//     node pipeline.mjs FOLDER "Guten Morgen!" "Good morning!"     vectors as JSON, one array a line

import { basename, dirname, resolve } from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const [folder, ...sentences] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = dirname(resolve(folder));
const extract = await pipeline("feature-extraction", basename(resolve(folder)), { dtype: "q8" });
const texts = sentences.map((sentence) => sentence.trim()); // as isoglot does
const vectors = await extract(texts, { pooling: "mean", normalize: true }); // the pooling of 1_Pooling/config.json
for (const vector of vectors.tolist()) console.log(JSON.stringify(vector));
