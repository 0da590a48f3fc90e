import assert from 'node:assert/strict'
import { codeOf, type CallContext } from '@svc/core'
import type { SettingDefinition, SettingOwner, Settings, SettingValues } from '@svc/core/contracts'
import { abortable, atOnce, caseMaker, type KitCase } from './kit-case.ts'

/** The settings that the kit uses. The subject adds them to the slot `SettingDefinitions` under the name `kit`. */
export const KIT_SETTINGS: SettingDefinition = {
  description: 'Settings of the kit',
  schema: {
    type: 'object',
    required: ['city'],
    properties: {
      city: { type: 'string', minLength: 1, maxLength: 20_000 },
      unit: { enum: ['celsius', 'fahrenheit'], default: 'celsius' },
      days: { type: 'integer', minimum: 1, maximum: 14, default: 3 },
      places: { type: 'array', items: { type: 'string' } },
      // a pattern that takes for ever in an engine that tries all ways
      word: { type: 'string', pattern: '^(a+)+$' },
      constructor: { type: 'string' },
    },
  },
}

/** Settings to test: no owner has values. */
export interface SettingsSubject {
  readonly settings: Settings
  /** The same settings in another process. */
  readonly other: Settings
  close?(): unknown
}

const system = abortable('settings kit').ctx
const as = (id: string, ...scopes: string[]): CallContext => ({ ...system, principal: { id, scopes } })
const [ANNA, BEN] = [as('anna', 'chat'), as('ben', 'chat')]
const OF_ANNA = { principal: 'anna' }
const OPS = { team: 'ops' }

async function refused(work: Promise<unknown>, code: string): Promise<Readonly<Record<string, unknown>>> {
  const error: unknown = await work.then(
    value => assert.fail(`expected ${code}, got ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown
  )
  assert.equal(codeOf(error), code, String(error))
  assert.ok((error as Error).message.length < 5_000, 'the error repeats its input')
  return (error as { details?: Readonly<Record<string, unknown>> }).details ?? {}
}

/**
 * Cases for every provider of settings: `for (const one of settingsKit(open)) it(one.title, one.run)`. `open` returns settings with
 * the definition `kit` (`KIT_SETTINGS`) each time, as seen by two processes.
 */
export function settingsKit(open: () => SettingsSubject | Promise<SettingsSubject>): KitCase[] {
  const make = caseMaker(open)
  return [...merging(make), ...changing(make), ...refusing(make)]
}

type Make = ReturnType<typeof caseMaker<SettingsSubject>>

function merging(make: Make): KitCase[] {
  return [
    make('returns the defaults of the schema without values', async ({ settings }) => {
      const { values, sources, ignored } = await settings.effective('kit', [], ANNA)
      assert.deepEqual([values, ignored], [{ unit: 'celsius', days: 3 }, []])
      assert.deepEqual(sources, { unit: 'default', days: 'default' })
      assert.deepEqual(await settings.read('kit', OF_ANNA, ANNA), { values: {}, version: 0 })
    }),
    make('merges defaults, teams in their order, and the principal, in every process', async ({ settings, other }) => {
      await settings.change('kit', OPS, { city: 'Oslo', days: 5, unit: 'fahrenheit' }, undefined, system)
      await settings.change('kit', { team: 'all' }, { days: 7, places: ['a', 'b'] }, undefined, system)
      await settings.change('kit', OF_ANNA, { unit: 'celsius', places: ['c'] }, undefined, ANNA)
      const { values, sources } = await other.effective('kit', ['ops', 'all'], ANNA)
      assert.deepEqual(values, { city: 'Oslo', days: 7, unit: 'celsius', places: ['c'] })
      assert.deepEqual(sources, { city: 'team:ops', days: 'team:all', unit: 'principal', places: 'principal' })
      assert.equal((await other.effective('kit', ['all', 'ops'], BEN)).values.days, 5)
      assert.deepEqual((await other.effective('kit', [], BEN)).values, { unit: 'celsius', days: 3 })
    }),
    make('keeps a principal and a team with the same name apart', async ({ settings }) => {
      await settings.change('kit', { team: 'anna' }, { city: 'Rome' }, undefined, system)
      assert.equal((await settings.effective('kit', [], ANNA)).values.city, undefined)
    }),
  ]
}

function changing(make: Make): KitCase[] {
  return [
    make('replaces the given keys and removes those that are null', async ({ settings }) => {
      await settings.change('kit', OF_ANNA, { city: 'Oslo', days: 2 }, undefined, ANNA)
      const { values, version } = await settings.change('kit', OF_ANNA, { days: null, unit: 'fahrenheit' }, undefined, ANNA)
      assert.deepEqual([values, version], [{ city: 'Oslo', unit: 'fahrenheit' }, 2])
      assert.deepEqual((await settings.read('kit', OF_ANNA, ANNA)).values, values)
      assert.equal((await settings.effective('kit', [], ANNA)).values.days, 3)
    }),
    make('changes a version once', async ({ settings, other }) => {
      const first = await settings.change('kit', OF_ANNA, { days: 1 }, 0, ANNA)
      await refused(other.change('kit', OF_ANNA, { days: 2 }, 0, ANNA), 'SETTINGS_CONFLICT')
      await other.change('kit', OF_ANNA, { days: 2 }, first.version, ANNA)
    }),
    make('loses no key when two processes change values at once', async ({ settings, other }) => {
      const changes: SettingValues[] = [{ city: 'Oslo' }, { unit: 'fahrenheit' }, { days: 9 }, { word: 'aaa' }]
      await Promise.all(changes.map((values, at) => (at % 2 ? settings : other).change('kit', OF_ANNA, values, undefined, ANNA)))
      assert.deepEqual((await settings.read('kit', OF_ANNA, ANNA)).values, Object.assign({}, ...changes))
    }),
    make('reports the owner of each change, by every process', async ({ settings, other }) => {
      const ending = abortable('changes')
      const changes = settings.changes('kit', ending.ctx)[Symbol.asyncIterator]()
      const next = changes.next()
      next.catch(() => {})
      await other.change('kit', OF_ANNA, { days: 2 }, undefined, ANNA)
      assert.deepEqual((await atOnce(next, 'a change')).value, OF_ANNA)
      const last = changes.next()
      await other.change('kit', OPS, { days: 2 }, undefined, system)
      assert.deepEqual((await atOnce(last, 'a change')).value, OPS)
      ending.abort()
      await changes.return?.()
    }),
    make('keeps keys that every JavaScript object has, such as constructor', async ({ settings }) => {
      await settings.change('kit', OF_ANNA, { constructor: 'x' } as unknown as SettingValues, undefined, ANNA)
      assert.equal(Object.getOwnPropertyDescriptor((await settings.effective('kit', [], ANNA)).values, 'constructor')?.value, 'x')
    }),
  ]
}

/** Values that do not match, with the place that the error names. */
const INVALID: readonly (readonly [unknown, string])[] = [
  [{ days: 0 }, 'days'],
  [{ days: 1.5 }, 'days'],
  [{ days: '3' }, 'days'],
  [{ unit: 'kelvin' }, 'unit'],
  [{ places: ['a', 7] }, 'places[1]'],
  [{ city: '' }, 'city'],
  [{ town: 'x' }, 'town'],
  [JSON.parse('{"__proto__": {"days": 1}}'), '__proto__'],
  [{ toString: 'x' }, 'toString'],
  [{ word: `${'a'.repeat(5_000)}!` }, 'word'],
  [[1], 'the values'],
  ['x', 'the values'],
  [null, 'the values'],
]

function refusing(make: Make): KitCase[] {
  return [
    make('rejects values that do not match, in the terms of the caller, and stores nothing', async ({ settings }) => {
      for (const [values, path] of INVALID) {
        const given = (
          Array.isArray(values) || values === null || typeof values !== 'object' ? values : { ...values }
        ) as SettingValues
        const change = Object.hasOwn(Object(values), '__proto__') ? (values as SettingValues) : given
        const details = await refused(settings.change('kit', OF_ANNA, change, undefined, ANNA), 'SETTINGS_INVALID')
        const [problem] = details.problems as { path: string; message: string }[]
        assert.equal(problem?.path, path, JSON.stringify(details))
      }
      await refused(settings.change('kit', OF_ANNA, { days: 5, unit: 'kelvin' }, undefined, ANNA), 'SETTINGS_INVALID')
      assert.deepEqual(await settings.read('kit', OF_ANNA, ANNA), { values: {}, version: 0 })
    }),
    make('rejects values that are too large', async ({ settings }) => {
      await refused(settings.change('kit', OF_ANNA, { city: 'x'.repeat(20_000) }, undefined, ANNA), 'SETTINGS_TOO_LARGE')
    }),
    make('rejects unknown names and owners', async ({ settings }) => {
      const names: readonly unknown[] = ['', 'other', '__proto__', '../kit', 'kit ', 'KIT', 'x'.repeat(10_000), null, 7]
      for (const name of names as string[]) await refused(settings.effective(name, [], ANNA), 'SETTINGS_UNKNOWN')
      const owners: readonly unknown[] = [
        {},
        { principal: '' },
        { principal: 7 },
        { team: 'x'.repeat(1_025) },
        { team: '\ud800' },
        null,
        'anna',
      ]
      for (const owner of [...owners, { principal: 'anna', team: 'ops' }] as SettingOwner[])
        await refused(settings.change('kit', owner, { days: 1 }, undefined, system), 'SETTINGS_INVALID')
      await refused(settings.effective('kit', Array(101).fill('t') as string[], ANNA), 'SETTINGS_INVALID')
    }),
    make('lets a principal change only its own values', async ({ settings }) => {
      await refused(settings.change('kit', OF_ANNA, { days: 1 }, undefined, BEN), 'FORBIDDEN')
      await refused(settings.change('kit', OPS, { days: 1 }, undefined, BEN), 'FORBIDDEN')
      await refused(settings.read('kit', OF_ANNA, BEN), 'FORBIDDEN')
      await settings.change('kit', OF_ANNA, { days: 1 }, undefined, as('root', 'admin'))
      assert.deepEqual((await settings.read('kit', OPS, BEN)).values, {})
    }),
  ]
}
