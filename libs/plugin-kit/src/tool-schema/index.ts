export { type ToolSchema, toolSchema } from './tool-schema.ts'
