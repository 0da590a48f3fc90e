import { runInNewContext } from 'node:vm'
import { type SchemaProblem, type JsonSchema, type Schema, schema } from '@svc/core'

/** The schema of an isolated plugin, which is untrusted. */
export interface UntrustedSchema extends Schema {
  /** Returns the configured part of a checked value, without the defaults that the plugin's schema has filled in. */
  written(value: unknown): unknown
}

/** Time limit of one check in milliseconds, including the load of the validator. */
const CHECK_MS = 2000

const TOO_LONG: SchemaProblem = {
  path: '',
  keys: [],
  keyword: 'time',
  message: `cannot be checked: the schema of its plugin takes longer than ${CHECK_MS} ms`,
}

/**
 * Creates a schema whose patterns and references could take for ever. A check that exceeds the time limit is reported as a
 * problem.
 */
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

/** For an absent section, the host uses the default of the schema. */
const isDefault = (json: JsonSchema, value: object) =>
  typeof json === 'object' && json.default !== undefined && JSON.stringify(json.default) === JSON.stringify(value)

/** Only a separate vm context can interrupt code in this thread, patterns included. */
function inTime(check: () => SchemaProblem[]): SchemaProblem[] {
  try {
    return runInNewContext('check()', { check }, { timeout: CHECK_MS }) as SchemaProblem[]
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return [TOO_LONG]
    throw error
  }
}
