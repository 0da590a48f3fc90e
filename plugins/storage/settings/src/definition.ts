import { isTree, type JsonSchema, messageOf, type SlotView } from '@svc/core'
import type { Json, SettingDefinition, SettingValues } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { type Problem, schemaBroken, settingsUnknown } from './errors.ts'

/** The settings of a plugin, ready to check values. */
export interface Definition {
  readonly name: string
  /** The plugin that has added them. */
  readonly plugin: string
  readonly keys: readonly string[]
  /** The problems of one value. */
  check(key: string, value: Json): Problem[]
  readonly defaults: SettingValues
}

const NAME = /^[a-z][a-z0-9_-]{0,63}$/
const MOST_KEYS = 200

/** Finds settings by name. Each schema is compiled once. */
export function createDefinitions(view: SlotView<SettingDefinition>): (name: string) => Promise<Definition> {
  const compiled = new WeakMap<SettingDefinition, Promise<Definition>>()
  return async name => {
    const found = typeof name === 'string' && NAME.test(name) ? view.get(name) : undefined
    if (!found) throw settingsUnknown(name)
    const definition = compiled.get(found) ?? compile(name, view.owner(name) ?? '', found)
    compiled.set(found, definition)
    return definition
  }
}

async function compile(name: string, plugin: string, { schema }: SettingDefinition): Promise<Definition> {
  const properties = isTree(schema) && isTree(schema.properties) ? schema.properties : undefined
  if (!properties || !isTree(schema)) throw schemaBroken(name, '"properties" is missing')
  const keys = Object.keys(properties)
  if (keys.length > MOST_KEYS) throw schemaBroken(name, `it has more than ${MOST_KEYS} keys`)
  // each value is checked alone, so keys that are missing are no problem
  const { required: _required, minProperties: _minimum, ...rest } = schema
  const whole = { ...rest, type: 'object', additionalProperties: false } as JsonSchema
  try {
    const { check } = await toolSchema(whole)
    const problemsOf = (value: object) =>
      check(value, 'first').map(({ path, message }) => ({ path: path || 'the value', message }))
    const defaults = bare()
    problemsOf(defaults) // ajv fills in the defaults
    const bad = problemsOf(Object.assign(bare(), defaults))
    if (bad[0]) throw new TypeError(`a default does not fit: ${bad[0].path} ${bad[0].message}`)
    return {
      name,
      plugin,
      keys,
      defaults,
      check: (key, value) =>
        keys.includes(key) ? problemsOf(Object.assign(bare(), { [key]: structuredClone(value) })) : [unknownKey(key, keys)],
    }
  } catch (error) {
    throw schemaBroken(name, messageOf(error).slice(0, 300))
  }
}

/** An object without inherited members: ajv would take its "constructor" for a value. */
const bare = (): Record<string, Json> => Object.create(null) as Record<string, Json>

const unknownKey = (key: string, keys: readonly string[]): Problem => ({
  path: key.slice(0, 64),
  message: `is not a setting; the settings are ${keys.slice(0, 20).join(', ') || 'none'}`,
})
