import { channel, hasSubscribers } from 'node:diagnostics_channel'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Ajv, CodeKeywordDefinition, Options, ValidateFunction } from 'ajv'

const require = createRequire(import.meta.url)

/** A JSON Schema, as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown } | boolean

/** Options of a schema. `regExp` is the pattern engine, as ajv takes it. */
export interface SchemaOptions {
  readonly problems?: 'all' | 'first'
  readonly regExp?: NonNullable<Options['code']>['regExp']
}

const ajvs: { all?: Ajv; first?: Ajv } = {}

/** Compiles a schema with ajv. */
export function compileSchema(json: JsonSchema, { problems: extent = 'all', regExp }: SchemaOptions): ValidateFunction {
  const ajv = regExp
    ? makeAjv({ ...VERBOSE, allErrors: extent === 'all', code: { regExp } })
    : (ajvs[extent] ??= makeAjv({ ...VERBOSE, allErrors: extent === 'all' }))
  return ajv.compile(json as object)
}

/** Errors then carry the value and the schema, for messages in the author's terms. */
const VERBOSE: Options = { verbose: true }

function makeAjv(options: Options): Ajv {
  const loaded = require('ajv') as typeof import('ajv')
  const ajv = new loaded.Ajv({
    strict: false,
    // 1e999 is valid JSON and would be an integer above every minimum.
    strictNumbers: true,
    validateSchema: false,
    useDefaults: true,
    addUsedSchema: false,
    // ajv writes each format that it does not know to the console.
    logger: false,
    ...options,
  })
  return ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems(loaded))
}

const UNIQUE = '@svc/core/unique-items'

/**
 * Redefines `uniqueItems` as ajv's manual describes it (removeKeyword, addKeyword). ajv's own compares each item with each,
 * which takes minutes for an untrusted list of a megabyte. This one compares texts in linear time.
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

/** Returns the same text for equal JSON, whatever the order of object keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member !== 'object' || member === null || Array.isArray(member)
      ? member
      : Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
  )

/** Whether a value fits. It fills in defaults, because it is ajv's code. */
type Fits = (value: unknown) => boolean
type Table = Readonly<Record<string, Fits>>
/**
 * The file that `scripts/validators.ts` writes: ajv's standalone code of schemas, by digest. Its `require` is the kernel's,
 * which has ajv.
 */
type Precompiled = (require: (id: string) => unknown, exports: Table) => Table

let file: string | undefined
let table: Table | undefined

/**
 * Uses the validators that the build has compiled into this file. Without it (in a checkout) ajv compiles each schema at its
 * first check.
 */
export function usePrecompiled(path: string | undefined): void {
  file = path !== undefined && existsSync(path) ? path : undefined
  table = undefined
}

/**
 * Returns the precompiled validator of a schema. It only reports whether a value fits; `compileSchema` then explains the
 * problems.
 */
export function precompiledOf(json: JsonSchema, { regExp }: SchemaOptions): Fits | undefined {
  if (file === undefined || regExp) return undefined
  table ??= (require(file) as Precompiled)(id => (id === UNIQUE ? isUnique : require(id)), {})
  return table[digestOf(json)]
}

/** `node:crypto` is loaded on first use: help needs this module, but no digest. */
const digestOf = (json: JsonSchema): string =>
  process.getBuiltinModule('node:crypto').hash('sha256', JSON.stringify(json), 'base64url')

/** Generates the file that `usePrecompiled` reads. Without error messages, ajv's code of a schema is a third as long. */
export function precompile(schemas: readonly JsonSchema[]): string {
  const standalone = require('ajv/dist/standalone') as typeof import('ajv/dist/standalone/index.js')
  const ajv = makeAjv({ messages: false, code: { source: true } })
  const byDigest = new Map(schemas.map(json => [digestOf(json), json]))
  for (const [digest, json] of byDigest) ajv.addSchema(json as object, digest)
  const names = Object.fromEntries([...byDigest.keys()].map(digest => [digest, digest]))
  // Not an arrow function: V8 would compile its inner functions again at each start.
  return `module.exports = function (require, exports) {\n${standalone.default(ajv, names)}\nreturn exports\n}\n`
}

/**
 * Publishes a new schema on Node's diagnostics channel `svc:schema`. The build compiles those that modules create when they
 * load.
 */
export function publishSchema(json: JsonSchema, { regExp }: SchemaOptions): void {
  if (hasSubscribers('svc:schema') && !regExp) channel('svc:schema').publish(json)
}
