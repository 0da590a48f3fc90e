import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type CallContext, codeOf, isTree, type SlotView, type JsonSchema, messageOf } from '@svc/core'
import type {
  EffectiveSettings,
  Json,
  SettingDefinition,
  SettingOwner,
  Settings,
  SettingValues,
  Space,
  Store,
  StoredSettings,
} from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import {
  type SettingProblem,
  settingsConflict,
  settingsForbidden,
  settingsInvalid,
  settingsTooLarge,
  schemaBroken,
  settingsUnknown,
} from './errors.ts'

const COLLECTION = 'settings'

export const SPACE: Space = { name: 'settings', version: 1, collections: { [COLLECTION]: { watched: true } } }

interface SettingsOptions {
  readonly store: Store
  readonly definitions: SlotView<SettingDefinition>
  readonly maxBytes: number
}

/** The record of one owner and one definition. */
interface SettingsRecord {
  readonly plugin: string
  readonly name: string
  readonly owner: { readonly kind: string; readonly id: string }
  readonly values: SettingValues
  readonly changed_at: number
}

const MOST_TEAMS = 100
const MAX_ID_LENGTH = 1024
const TRIES = 5

/** Creates the service. The space of the store must be open. */
export function createSettings({ store, definitions, maxBytes }: SettingsOptions): Settings {
  const definitionOf = createDefinitions(definitions)
  const read = async (definition: Definition, owner: SettingOwner, ctx: CallContext) =>
    storedOf(await store.get(COLLECTION, keyOf(definition, owner), ctx))
  return {
    async effective(name, teams, ctx) {
      const definition = await definitionOf(name)
      const owners: SettingOwner[] = [...checkedTeams(teams).map(team => ({ team })), { principal: ctx.principal.id }]
      const layers = await Promise.all(
        owners.map(async owner => ({ source: sourceOf(owner), values: (await read(definition, owner, ctx)).values }))
      )
      return merged(definition, layers)
    },
    async read(name, owner, ctx) {
      const definition = await definitionOf(name)
      mustOwn(checkedOwner(owner), ctx, 'team' in owner)
      return read(definition, owner, ctx)
    },
    async change(name, owner, values, ifVersion, ctx) {
      const definition = await definitionOf(name)
      mustOwn(checkedOwner(owner), ctx, false)
      checkValues(definition, values)
      for (let left = TRIES; ; left--) {
        const before = await read(definition, owner, ctx)
        if (ifVersion !== undefined && ifVersion !== before.version) throw settingsConflict(ifVersion, before.version)
        const record = recordOf(definition, owner, changed(before.values, values), maxBytes)
        const key = keyOf(definition, owner)
        try {
          await store.batch(
            [{ op: 'put', collection: COLLECTION, key, value: { ...record }, ifVersion: before.version }],
            {},
            ctx
          )
          return { values: record.values, version: before.version + 1, changedAt: record.changed_at }
        } catch (error) {
          if (codeOf(error) !== 'STORE_CONFLICT' || left <= 1) throw error
        }
      }
    },
    async *changes(name, ctx) {
      const { plugin } = await definitionOf(name)
      for await (const { value } of store.watch(COLLECTION, ctx)) {
        const record = value as unknown as SettingsRecord | undefined
        if (record?.name === name && record.plugin === plugin) yield ownerIn(record)
      }
    },
  }
}

function recordOf({ plugin, name }: Definition, owner: SettingOwner, values: SettingValues, maxBytes: number): SettingsRecord {
  const bytes = Buffer.byteLength(JSON.stringify(values))
  if (bytes > maxBytes) throw settingsTooLarge(bytes, maxBytes)
  return { plugin, name, owner: plainOwner(owner), values, changed_at: Date.now() }
}

/** The plugin is a part of the key: another plugin that takes the name gets no values. The digest bounds the length. */
function keyOf({ plugin, name }: Definition, owner: SettingOwner): string {
  const { kind, id } = plainOwner(owner)
  return createHash('sha256')
    .update(JSON.stringify([plugin, name, kind, id]))
    .digest('hex')
}

const plainOwner = (owner: SettingOwner) =>
  'team' in owner ? { kind: 'team', id: owner.team } : { kind: 'principal', id: owner.principal }

const ownerIn = ({ owner: { kind, id } }: SettingsRecord): SettingOwner => (kind === 'team' ? { team: id } : { principal: id })

const sourceOf = (owner: SettingOwner) => ('team' in owner ? `team:${owner.team}` : 'principal')

function storedOf(stored: { readonly version: number; readonly value: Json } | undefined): StoredSettings {
  if (!stored) return { values: {}, version: 0 }
  const { values, changed_at: changedAt } = stored.value as unknown as SettingsRecord
  return { values, version: stored.version, changedAt }
}

const isId = (id: unknown): id is string => typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH && id.isWellFormed()

function checkedOwner(owner: SettingOwner): SettingOwner {
  const ids = isTree(owner) ? Object.entries(owner) : []
  const [[kind, id] = []] = ids
  if (ids.length === 1 && (kind === 'principal' || kind === 'team') && isId(id)) return owner
  throw settingsInvalid([{ path: 'owner', message: 'must be { principal } or { team } with 1 to 1024 characters' }])
}

function checkedTeams(teams: readonly string[]): readonly string[] {
  if (Array.isArray(teams) && teams.length <= MOST_TEAMS && teams.every(isId)) return teams
  throw settingsInvalid([{ path: 'teams', message: `must be at most ${MOST_TEAMS} names with 1 to 1024 characters` }])
}

/** A principal reads and changes its own values. `isPublic`: others can read them too. */
function mustOwn(owner: SettingOwner, { principal }: CallContext, isPublic: boolean): void {
  const isOwn = 'principal' in owner && owner.principal === principal.id
  if (isOwn || isPublic || principal.scopes.some(scope => scope === '*' || scope === 'admin')) return
  throw settingsForbidden('team' in owner ? 'change values of a team' : 'use values of another principal')
}

const MOST_PROBLEMS = 20

function checkValues(definition: Definition, values: SettingValues): void {
  if (!isTree(values)) throw settingsInvalid([{ path: 'the values', message: 'must be an object' }])
  const problems: SettingProblem[] = []
  for (const [key, value] of Object.entries(values)) {
    if (problems.length >= MOST_PROBLEMS) break
    const isRemoved = value === null && definition.keys.includes(key)
    if (value === undefined || isRemoved) continue
    problems.push(...(isJson(value) ? definition.check(key, value) : [{ path: key.slice(0, 64), message: 'is not JSON' }]))
  }
  if (problems.length > 0) throw settingsInvalid(problems)
}

/** Whether the store keeps the value as it is. */
function isJson(value: unknown): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value)
  } catch {
    return false
  }
}

/** null removes a key. The keys are those of the schema, so none has a special meaning. */
function changed(before: SettingValues, values: SettingValues): SettingValues {
  const after = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(values)) {
    if (value === null) after.delete(key)
    else if (value !== undefined) after.set(key, value)
  }
  return Object.fromEntries(after)
}

interface SettingsLayer {
  readonly source: string
  readonly values: SettingValues
}

/** Later layers replace values of earlier ones. A stored value that the schema no longer accepts is ignored. */
function merged(definition: Definition, layers: readonly SettingsLayer[]): EffectiveSettings {
  const values = new Map(Object.entries(structuredClone({ ...definition.defaults })))
  const sources = new Map([...values.keys()].map(key => [key, 'default']))
  const ignored = new Set<string>()
  for (const layer of layers)
    for (const [key, value] of Object.entries(layer.values)) {
      if (value === undefined || definition.check(key, value).length > 0) {
        ignored.add(key)
        continue
      }
      values.set(key, value)
      sources.set(key, layer.source)
    }
  return { values: Object.fromEntries(values), sources: Object.fromEntries(sources), ignored: [...ignored] }
}

/** The settings of a plugin, ready to check values. */
interface Definition {
  readonly name: string
  /** The plugin that has added them. */
  readonly plugin: string
  readonly keys: readonly string[]
  /** The problems of one value. */
  check(key: string, value: Json): SettingProblem[]
  readonly defaults: SettingValues
}

const NAME = /^[a-z][a-z0-9_-]{0,63}$/
const MOST_KEYS = 200

/** Finds settings by name. Each schema is compiled once. */
function createDefinitions(view: SlotView<SettingDefinition>): (name: string) => Promise<Definition> {
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

const unknownKey = (key: string, keys: readonly string[]): SettingProblem => ({
  path: key.slice(0, 64),
  message: `is not a setting; the settings are ${keys.slice(0, 20).join(', ') || 'none'}`,
})
