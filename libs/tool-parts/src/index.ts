export { type Stripped, stripData, stripped, stripResult, stripWords } from './hidden.ts'
export { objectOf } from './object-of.ts'
export { answerOf, toolOf, type TypedTool } from './tool-of.ts'
