export { JSON_FLAG, lineInvalid, readLine } from './line.ts'
export { oneLine, table } from './text.ts'
