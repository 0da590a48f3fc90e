export { type ParametersCheck, toolSchema } from './tool-schema.ts'
