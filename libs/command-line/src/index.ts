export { lineInvalid } from './line.ts'
export { oneLine, table } from './text.ts'
