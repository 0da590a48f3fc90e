// Writes TypeScript types of an OpenAPI document: node client/generate/generate.mjs <document.json> <types.ts>
// `npm run client:types` runs it in this folder, because openapi-typescript needs TypeScript 5.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

const [, , from, to] = process.argv
const tree = await openapiTS(JSON.parse(await readFile(from, 'utf8')), {
  // a field with a default can be left out
  defaultNonNullable: false,
  emptyObjectsUnknown: true,
})
await writeFile(to, astToString(tree))
