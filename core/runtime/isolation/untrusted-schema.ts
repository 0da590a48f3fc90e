import { runInNewContext } from 'node:vm'
import { type SchemaProblem, type JsonSchema, type Schema, schema } from '@svc/core'

/** The configuration of an isolated plugin: its schema is a stranger's. */
export interface UntrustedSchema extends Schema {
  /** What the configuration itself says of a checked value, without the defaults that the plugin's schema has filled in. */
  written(value: unknown): unknown
}

/** Milliseconds for one check, the loading of the checker included. */
const CHECK_MS = 2000

const TOO_LONG: SchemaProblem = {
  path: '',
  keys: [],
  keyword: 'time',
  message: `cannot be checked: the schema of its plugin takes longer than ${CHECK_MS} ms`,
}

/** A schema whose patterns and references may take for ever: the check is ended then, and that is the fault. */
export function untrustedSchema(json: JsonSchema): UntrustedSchema {
  const own = schema(json)
  const before = new WeakMap<object, unknown>()
  return {
    json,
    check(value) {
      if (typeof value === 'object' && value !== null) before.set(value, isDefault(json, value) ? {} : structuredClone(value))
      return inTime(() => own.check(value))
    },
    written: value => (typeof value === 'object' && value !== null ? (before.get(value) ?? {}) : value),
  }
}

/** Of a section that is not there the host takes the schema's own word. */
const isDefault = (json: JsonSchema, value: object) =>
  typeof json === 'object' && json.default !== undefined && JSON.stringify(json.default) === JSON.stringify(value)

/** A context of its own has the only clock that ends code in this thread, patterns too. */
function inTime(check: () => SchemaProblem[]): SchemaProblem[] {
  try {
    return runInNewContext('check()', { check }, { timeout: CHECK_MS }) as SchemaProblem[]
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return [TOO_LONG]
    throw error
  }
}
