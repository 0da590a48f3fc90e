import { type ConfigTree, isTree } from './config.ts'
import type { SchemaProblem } from './schema.ts'
import { SECRET_NAME } from './redaction.ts'

/** A reference in a value of the configuration, such as `${secret:db_password}`. */
export interface ConfigReference {
  /** The place of the value, below the section. */
  readonly keys: readonly string[]
  /** The name. Absent: what follows `${secret:` is not a name and a brace. */
  readonly name?: string
}

/** `$${secret:` stands for the text `${secret:`. */
const REFERENCE = /(\$?)\$\{secret:(?:([^}]*)\})?/g

/** Lists the references in all texts of a value. */
export function referencesIn(value: unknown, keys: readonly string[] = []): ConfigReference[] {
  if (typeof value === 'string') return value.includes('${secret:') ? inText(value, keys) : []
  if (Array.isArray(value)) return value.flatMap((item, at) => referencesIn(item, [...keys, String(at)]))
  return isTree(value) ? Object.entries(value).flatMap(([key, item]) => referencesIn(item, [...keys, key])) : []
}

const inText = (text: string, keys: readonly string[]): ConfigReference[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, escape, name]) => {
    if (escape === '$') return []
    return [name !== undefined && SECRET_NAME.test(name) ? { keys, name } : { keys }]
  })

/** Keywords that report a problem of an inner value at a value around it. */
const AROUND: readonly string[] = ['oneOf', 'anyOf', 'allOf', 'not', 'contains']

/** Whether a problem can be due to a reference that is not resolved yet. */
export const canBeOfReference = ({ keys, keyword }: SchemaProblem, references: readonly ConfigReference[]): boolean =>
  references.some(reference => {
    const isWithin = keys.every((key, at) => key === reference.keys[at])
    return isWithin && (keys.length === reference.keys.length || AROUND.includes(keyword))
  })

/** Copies a value with the secrets in place of the references. A secret is not searched for references. */
export function withSecrets(value: unknown, secrets: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string')
    return value.replace(REFERENCE, (whole: string, escape: string, name?: string) =>
      escape === '$' ? whole.slice(1) : (secrets.get(name ?? '') ?? whole)
    )
  if (Array.isArray(value)) return value.map(item => withSecrets(item, secrets))
  if (!isTree(value)) return value
  const tree: ConfigTree = {}
  for (const [key, item] of Object.entries(value))
    Object.defineProperty(tree, key, {
      value: withSecrets(item, secrets),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  return tree
}
