import { SECRET } from '@svc/core'

/** Values of environment variables that are called like secrets: a package may read its key from one by itself, and its upstream may repeat it. */
export const environmentSecrets = (): string[] =>
  Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && SECRET.test(name) ? [value] : []))
