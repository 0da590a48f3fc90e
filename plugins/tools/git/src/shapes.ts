const path = { type: 'string', minLength: 1, maxLength: 4096 } as const

/** JSON Schemas of shared arguments. */
const REPOSITORY = { ...path, description: 'folder in the repository; default "."' } as const
export const paths = (description: string) => ({ type: 'array', items: path, minItems: 1, maxItems: 200, description }) as const
export const ref = (description: string) => ({ type: 'string', minLength: 1, maxLength: 300, description }) as const

/** JSON Schema of the arguments of a git tool. */
export const parameters = <P extends object>(properties: P, required: readonly string[] = []) => ({
  type: 'object',
  properties: { repository: REPOSITORY, ...properties },
  required,
  additionalProperties: false,
})

export const TEXT = { type: 'string' } as const
export const COUNT = { type: 'integer' } as const
export const FLAG = { type: 'boolean' } as const
export const listOf = <I extends object>(items: I) => ({ type: 'array', items }) as const
