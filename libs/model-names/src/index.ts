export { createModelNames, type ModelNames } from './model-names.ts'
