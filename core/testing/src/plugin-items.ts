import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyService, type AnySlot, codeOf, messageOf, type RunningHost, type ServiceToken, type SlotToken } from '@svc/core'
import {
  type AuthScheme,
  AuthSchemes,
  Counts,
  ErrorFormats,
  type Json,
  type ModelRequest,
  type Provider,
  Providers,
  Routes,
  Store,
  TextIndex,
  type Tool,
  Tools,
  type WorkflowNode,
  WorkflowNodes,
  type ErrorFormat,
  type FailedRequest,
  ROUTE_HEADERS,
} from '@svc/core/contracts'
import { assertHeaders, authKit } from './auth-kit.ts'
import { countsKit } from './counts-kit.ts'
import {
  abortable,
  assertPlain,
  atOnce,
  caseMaker,
  frozen,
  type KitCase,
  leavesNothingOpen,
  outcome,
  skipped,
  warn,
} from './kit-case.ts'
import { assertCode, generateMatching, settledOutcome } from './made-up.ts'
import { routeCases } from './made-up-routes.ts'
import { nodeKit } from './node-kit.ts'
import { play, assertDescribed, assertSettings } from './node-play.ts'
import { type ItemUnderTest, itemUnderTest, type Observed, openPlugin, openRun } from './plugin-host.ts'
import type { PluginPackage, PluginKitOptions } from './plugin-package.ts'
import { checkOrder, readAll } from './provider-subject.ts'
import { providerKit } from './provider-kit.ts'
import { storeKit } from './store-kit.ts'
import { textIndexKit } from './text-index-kit.ts'
import { assertReadable, checkResult, describeTool, GOOD_ARGUMENTS, shown, toolKit, type ToolSubject } from './tool-kit.ts'

/** Cases for each contribution: the kit of its kind with samples, else cases with generated data. */
export function itemCases(found: PluginPackage, options: PluginKitOptions, host: RunningHost): KitCase[] {
  const each = <T>(slot: SlotToken<T>, cases: (thing: ItemUnderTest<T>) => KitCase[]) =>
    host
      .slot(slot)
      .entries()
      .filter(([name]) => host.slot(slot).owner(name) === found.info.name)
      .flatMap(([name, seen]) => {
        const observed = { problems: new Set<string>(), warnings: new Set<string>() }
        return named(slot, name, observed, cases(itemUnderTest(found, options, slot, name, seen, observed)))
      })
  return [
    ...each(Tools, ofTool),
    ...each(Providers, ofProvider),
    ...each(WorkflowNodes, ofNode),
    ...each(AuthSchemes, ofAuth),
    ...each(Routes, routeCases),
    ...each(ErrorFormats, errorFormatCases),
    ...(found.plugin?.provides?.name === Store.name ? ofStore(found, options) : []),
  ]
}

/** Each case also fails for what the plugin may not do. */
const named = (slot: AnySlot, name: string, { problems, warnings }: Observed, cases: readonly KitCase[]): KitCase[] =>
  cases.map(testCase => ({
    ...testCase,
    title: `${slot.name} ${name}: ${testCase.title}`,
    async run() {
      problems.clear()
      warnings.clear()
      const { error, failed } = await outcome(testCase.run.call(this))
      warn(this, warnings)
      const found = [...problems].join('\n')
      if (failed) throw found === '' ? error : new Error(`${messageOf(error)}\n${found}`, { cause: error })
      assert.ok(found === '', found)
    },
  }))

const missing = (what: string): KitCase => skipped(`passes the ${what}`, `samples of it in test/samples`)

function ofTool(thing: ItemUnderTest<Tool>): KitCase[] {
  const { name, options, open } = thing
  const samples = options.tools?.[name]
  const subject = async () => {
    const { item, ...subject } = await open()
    return { tool: item, name, ...subject }
  }
  return [...toolCases(thing, subject), ...(samples ? toolKit(subject, samples) : [missing('toolKit')])]
}

function ofProvider(thing: ItemUnderTest<Provider>): KitCase[] {
  const { options, open } = thing
  const made = providerCases(thing)
  if (!options.provider) return [...made, missing('providerKit')]
  const { connections, ...samples } = options.provider
  const subject = async () => {
    const { item, ...subject } = await open()
    return { provider: item, ...subject, ...(connections ? { connections } : {}) }
  }
  return [...made, ...providerKit(subject, samples, samples)]
}

function ofNode(thing: ItemUnderTest<WorkflowNode>): KitCase[] {
  const { name, options, open } = thing
  const samples = options.nodes?.[name]
  const subject = async () => {
    const { item, ...subject } = await open()
    return { node: item, ...subject }
  }
  return [...nodeCases(thing), ...(samples ? nodeKit(subject, samples) : [missing('nodeKit')])]
}

function ofAuth(thing: ItemUnderTest<AuthScheme>): KitCase[] {
  const { name, options, open } = thing
  const credentials = options.auth?.[name]
  const subject = async () => {
    const { item, ...subject } = await open()
    return { scheme: item, ...subject, ...credentials! }
  }
  return [...authCases(thing), ...(credentials ? authKit(subject) : [missing('authKit')])]
}

/** Data of a store must not survive its host, unless its author declares that it lasts. All hosts of a case share one run. */
function ofStore(found: PluginPackage, options: PluginKitOptions): KitCase[] {
  const open = async () => {
    const run = await openRun()
    const start = () => openPlugin(found, options, { strict: false, run })
    let now = await start()
    return {
      service: <T>(token: ServiceToken<T>) => now.host.service(token),
      async anew<T>(token: ServiceToken<T>) {
        await now.close()
        now = await start()
        return now.host.service(token)
      },
      [Symbol.asyncDispose]: () => now.close().finally(() => run[Symbol.asyncDispose]()),
    }
  }
  const opened = async <T, K extends string>(token: ServiceToken<T>, key: K) => {
    const under = await open()
    return {
      hasOtherClock: found.isolation === 'process',
      ...({ [key]: under.service(token) } as Record<K, T>),
      ...(options.lasts ? { reopen: () => under.anew(token) } : {}),
      [Symbol.asyncDispose]: () => under[Symbol.asyncDispose](),
    }
  }
  /** The store with its searches as one object. */
  const openedTexts = async () => {
    const under = await open()
    const together = (store: Store, texts: TextIndex) =>
      ({
        ...Object.fromEntries(Object.keys(Store.methods).map(name => [name, Reflect.get(store, name)])),
        search: texts.search,
      }) as Store & TextIndex
    return {
      store: together(under.service(Store), under.service(TextIndex)),
      ...(options.lasts ? { reopen: async () => together(await under.anew(Store), under.service(TextIndex)) } : {}),
      [Symbol.asyncDispose]: () => under[Symbol.asyncDispose](),
    }
  }
  const provides = (token: AnyService) => found.plugin?.alsoProvides?.some(({ name }) => name === token.name)
  const cases = [
    ...storeKit(() => opened(Store, 'store')),
    ...(provides(Counts) ? countsKit(() => opened(Counts, 'counts')) : []),
    ...(provides(TextIndex) ? textIndexKit(() => openedTexts()) : []),
  ]
  return cases.map(testCase => ({ ...testCase, title: `store: ${testCase.title}` }))
}

/** Cases for an auth scheme without samples. */
function authCases({ options, open }: ItemUnderTest<AuthScheme>): KitCase[] {
  const make = caseMaker(open)
  return [
    make('names a challenge that a header can carry', async ({ item }) => {
      assert.match(item.challenge, /^[A-Za-z][\w-]*( [\x20-\x7e]+)?$/)
    }),
    make('declares the headers that it reads', async ({ item }) => assertHeaders(item)),
    make('rejects generated credentials, and ends each request', async ({ item }) => {
      for (const value of generateMatching({ type: 'string' }, options) as string[])
        for (const header of item.headers) {
          const request = frozen({ headers: { [header]: value }, address: '192.0.2.1', method: 'GET', path: '/', query: '' })
          const { value: taken, error } = await settledOutcome(
            item.authenticate(request, abortable().ctx),
            `a generated ${header}`
          )
          assert.equal(taken, undefined, `it takes ${JSON.stringify(value)} in ${header}`)
          if (error !== undefined) assertCode(error, ['AUTHENTICATION_FAILED'], `a generated ${header}`)
        }
    }),
  ]
}

const PLAYS = 'answers generated settings, or fails with a code'

/** Cases for a node without samples. */
function nodeCases({ name, options, permissions, open }: ItemUnderTest<WorkflowNode>): KitCase[] {
  const make = caseMaker(open)
  const described = [
    make('describes itself in plain data', async ({ item }) => assertDescribed(item)),
    make('describes each setting, and redefines no common setting of nodes', async ({ item }) => assertSettings(item)),
  ]
  const isAlone = Object.keys(permissions).length === 0
  return [
    ...(options.nodes?.[name] ? [] : described),
    isAlone
      ? make(PLAYS, async ({ item }) => {
          for (const settings of generateMatching(item.settings, options) as { readonly [key: string]: Json }[]) {
            const what = JSON.stringify(settings).slice(0, 200)
            const { error } = await settledOutcome(
              play(() => item, { settings }, { ctx: abortable().ctx }),
              what
            )
            assert.ok(error === undefined || codeOf(error) !== undefined, `${what}: failed without a code: ${String(error)}`)
          }
        })
      : skipped(PLAYS, '`nodes` (its permissions reach outside)'),
  ]
}

const ANSWERS = 'ends generated requests with ordered events, or with MODEL_FAILED'

/** Cases for a provider without samples. */
function providerCases({ options, permissions, open }: ItemUnderTest<Provider>): KitCase[] {
  const make = caseMaker(open)
  const describing = make('lists its features and models as plain data', async ({ item }) => {
    assertPlain(item.features, 'features')
    const { value, error } = await settledOutcome(item.models(abortable().ctx), 'models')
    if (error !== undefined) assertCode(error, ['MODEL_FAILED'], 'models')
    else assert.ok(value!.open || value!.models.length > 0, 'a closed list must name at least one model')
  })
  if ((permissions.network?.length ?? 0) > 0) return [describing, skipped(ANSWERS, 'a network')]
  return [
    describing,
    make(ANSWERS, async ({ item }) => {
      const { models } = await item.models(abortable().ctx)
      for (const request of requests(models[0]?.id ?? 'made-up', options)) {
        const { value, error } = await settledOutcome(readAll(item, frozen(request)), JSON.stringify(request).slice(0, 200))
        if (value) checkOrder(value)
        else assertCode(error, ['MODEL_FAILED'], 'a generated request')
      }
    }),
  ]
}

const requests = (model: string, options: PluginKitOptions): ModelRequest[] =>
  generateMatching({ type: 'array', minItems: 1, maxItems: 3, items: { type: 'string' } }, options).map(texts => ({
    model,
    messages: (texts as string[]).map((text, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      parts: [{ type: 'text' as const, text }],
    })),
  }))

type Arguments = { readonly [name: string]: Json | undefined }
const CALLS = 'ends generated calls with a result or a readable error, changes no argument and leaves nothing open'
const ABORTED = 'does not start a generated call whose signal is already aborted'

/** Cases for a tool without samples. */
function toolCases({ name, seen, options }: ItemUnderTest<Tool>, open: () => Promise<ToolSubject>): KitCase[] {
  const make = caseMaker(open)
  const samples = options.tools?.[name]
  const made = ({ tool }: ToolSubject) => generateMatching(tool.parameters, options) as Arguments[]
  const none = { good: [{ args: {} }], bad: [] }
  const described = samples ? [] : describeTool(make, none).filter(({ title }) => title !== GOOD_ARGUMENTS)
  if (!samples?.madeUp && seen.effects.some(effect => effect !== 'read'))
    return [
      ...described,
      ...[CALLS, ABORTED].map(title =>
        skipped(title, `\`madeUp: true\` in tools.${name} of test/samples (its effects are ${seen.effects.join(', ')})`)
      ),
    ]
  return [
    ...described,
    make(CALLS, async subject => callAll(subject, made(subject))),
    make(ABORTED, async subject => {
      const [args = {}] = made(subject)
      const { ctx, abort } = abortable()
      abort()
      const { failed } = await atOnce(outcome(subject.tool.call(frozen(args), ctx)), 'the end of an aborted call')
      assert.ok(failed, 'it answered a call that was already aborted: begin with signal.throwIfAborted()')
    }),
  ]
}

/** Milliseconds in which a plugin can use the context of its last call too late. */
const LATE_MS = 50

async function callAll(subject: ToolSubject, all: readonly Arguments[]): Promise<void> {
  const { tool } = subject
  assert.ok(all.length > 0, 'no arguments can be generated for its schema: add samples')
  const [first = {}] = all
  // A resource that is opened once is not a leak.
  await settledOutcome(tool.call(frozen(first), abortable().ctx), shown(first))
  await leavesNothingOpen(subject, async () => {
    for (const args of all) {
      const { value, error } = await settledOutcome(tool.call(frozen(args), abortable().ctx), shown(args))
      if (value) checkResult(tool, value, shown(args))
      else assertReadable(messageOf(error))
    }
  })
  await sleep(LATE_MS)
}

/** Errors of each kind, as the server passes them on. */
const FAILURES: readonly Pick<FailedRequest, 'status' | 'retryAfter'>[] = [
  ...[400, 401, 403, 404, 405, 413, 415, 500, 504].map(status => ({ status })),
  { status: 429, retryAfter: 7 },
  { status: 503, retryAfter: 1 },
]
const CODES: Readonly<Record<number, string>> = {
  400: 'INVALID_VALUE',
  401: 'AUTHENTICATION_FAILED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED',
  500: 'INTERNAL_ERROR',
  503: 'UNAVAILABLE',
  504: 'TIMEOUT',
}
const LONGEST = 65_536

/** Cases for a format of errors: errors of each kind, also with a long text. */
function errorFormatCases({ open }: ItemUnderTest<ErrorFormat>): KitCase[] {
  const make = caseMaker(open)
  const each =
    (error: string) =>
    async ({ item }: { readonly item: ErrorFormat }) => {
      for (const failure of FAILURES) {
        const record = { success: false, error, error_code: CODES[failure.status] ?? '', details: { field: 'model' } } as const
        const failed = frozen({ record, ...failure, requestId: 'request-1', method: 'POST', path: `${item.path}/x` })
        const { value, error: thrown } = await atOnce(outcome(item.format(failed, abortable().ctx)), 'a formatted error')
        assert.equal(thrown, undefined, `it fails for the status ${failure.status}`)
        checkFormatted(value)
      }
    }
  return [make('formats an error of each kind', each('it failed')), make('formats a long text', each('"\n€'.repeat(3_000)))]
}

function checkFormatted(formatted: Awaited<ReturnType<ErrorFormat['format']>> | undefined): void {
  assertPlain(formatted, 'formatted error')
  const { body, headers = {}, event, ...others } = formatted!
  assert.deepEqual(Object.keys(others), [], 'it returns body, headers and event; the server sets the status')
  assert.ok(typeof body === 'object' && !Array.isArray(body), 'its body is an object')
  assert.ok(JSON.stringify(body).length <= LONGEST, `its body has at most ${LONGEST} characters`)
  assert.ok(event === undefined || (event.endsWith('\n\n') && event.length <= LONGEST), 'its event ends with an empty line')
  const refused = Object.keys(headers).filter(name => !isAllowed(name.toLowerCase()))
  assert.deepEqual(refused, [], `it has headers that the server leaves out: ${refused.join(', ')}`)
  for (const [name, value] of Object.entries(headers)) assert.match(value, /^[\x20-\x7e]{0,1000}$/, `its header ${name}`)
}

const isAllowed = (name: string) =>
  (ROUTE_HEADERS.api.includes(name) || ROUTE_HEADERS.apiPrefixes.some(prefix => name.startsWith(prefix))) &&
  !ROUTE_HEADERS.apiReserved.includes(name)
