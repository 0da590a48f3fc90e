import { hash } from 'node:crypto'
import { channel, hasSubscribers } from 'node:diagnostics_channel'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Ajv, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv'
import type { JsonSchema } from './schema.ts'

const require = createRequire(import.meta.url)

/** How a schema is checked; the engine for its patterns is as ajv takes it. */
export interface How {
  readonly faults?: 'all' | 'first'
  readonly regExp?: NonNullable<Options['code']>['regExp']
}
type Faults = NonNullable<How['faults']>

const ajvs: { all?: Ajv; first?: Ajv } = {}

/** Compiles a schema with ajv, or takes what the build has compiled of it. */
export function validatorOf(json: JsonSchema, { faults = 'all', regExp }: How): ValidateFunction {
  if (regExp) return makeAjv(faults, { regExp }).compile(json as object)
  return precompiledOf(faults, json) ?? (ajvs[faults] ??= makeAjv(faults)).compile(json as object)
}

export function makeAjv(faults: Faults, code: Options['code'] = {}): Ajv {
  const loaded = require('ajv') as typeof import('ajv')
  const ajv = new loaded.Ajv({
    allErrors: faults === 'all',
    strict: false,
    // 1e999 is JSON, and would be an integer above every minimum
    strictNumbers: true,
    validateSchema: false,
    useDefaults: true,
    verbose: true,
    addUsedSchema: false,
    code,
  })
  return ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems(loaded))
}

const UNIQUE = '@svc/core/unique-items'

/**
 * `uniqueItems`, redefined as ajv's manual describes it (removeKeyword, addKeyword): ajv's own compares each item with each, for minutes where a stranger sends a
 * list of a megabyte; this one compares texts, in time that grows with the list.
 */
const uniqueItems = ({ _ }: typeof import('ajv')): CodeKeywordDefinition => ({
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  code(context) {
    if (context.schema !== true) return
    const unique = context.gen.scopeValue('func', { ref: isUnique, code: _`require(${UNIQUE})` })
    context.pass(_`${unique}(${context.data})`)
  },
  error: { message: 'must not have the same item twice' },
})

const isUnique = (items: readonly unknown[]) => new Set(items.map(canonical)).size === items.length

/** The same text for the same JSON, in whatever order the keys of its objects stand. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member !== 'object' || member === null || Array.isArray(member)
      ? member
      : Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
  )

/** What `scripts/validators.ts` writes: ajv's standalone code of schemas, by the digest of each. Its `require` is the kernel's, which has ajv. */
type Precompiled = Readonly<Record<Faults, (require: (id: string) => unknown, exports: Validators) => Validators>>
type Validators = Readonly<Record<string, ValidateFunction>>

let file: string | undefined
let loaded: Partial<Record<Faults, Validators>> = {}

/** Takes validators from this file of the build. Without one (in a checkout) ajv compiles each schema at its first check. */
export function usePrecompiled(path: string | undefined): void {
  file = path !== undefined && existsSync(path) ? path : undefined
  loaded = {}
}

function precompiledOf(faults: Faults, json: JsonSchema): ValidateFunction | undefined {
  if (file === undefined) return undefined
  loaded[faults] ??= (require(file) as Precompiled)[faults](id => (id === UNIQUE ? isUnique : require(id)), {})
  return loaded[faults][digestOf(json)]
}

export const digestOf = (json: JsonSchema): string => hash('sha256', JSON.stringify(json), 'base64url')

/** A schema that was made, for the build, which compiles those that modules make when they are loaded. */
export interface Made {
  readonly json: JsonSchema
  readonly faults: Faults
}

/** Publishes on Node's diagnostics channel `svc:schema` that a schema was made. */
export function publishSchema(json: JsonSchema, { faults = 'all', regExp }: How): void {
  if (hasSubscribers('svc:schema') && !regExp) channel('svc:schema').publish({ json, faults } satisfies Made)
}
