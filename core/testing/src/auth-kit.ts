import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type CallContext, codeOf } from '@svc/core'
import { type AuthScheme, type CredentialHolder, type CredentialRequest, SERVER_HEADERS } from '@svc/core/contracts'
import { abortable, assertPlain, atOnce, caseMaker, frozen, type KitCase, type KitSubject, outcome } from './kit-case.ts'

type Headers = Readonly<Record<string, string>>

/**
 * A valid credential and its holder. `header` carries the whole credential; its name is in lower case: `authorization`,
 * `x-api-key`. A scheme for signed requests takes it for `GET /` without a body.
 */
interface GoodCredential {
  readonly header: string
  readonly value: string
  readonly id: string
  readonly scopes: readonly string[]
  /** Further headers of each request with a credential: a key id, a time. */
  readonly beside?: Headers
}

/** An auth scheme to test, with its credentials. It can run in another process. */
export interface AuthSubject extends KitSubject {
  readonly scheme: AuthScheme
  /** A valid credential. A function returns another one each time: for a scheme that accepts each credential once. */
  readonly good: GoodCredential | (() => GoodCredential)
  /** Invalid credentials of its kind, by reason: expired, revoked, of another issuer. */
  readonly bad: Readonly<Record<string, string>>
  /**
   * True: its credentials have no form of their own, so the scheme passes on a value that it does not know. The server refuses a
   * value that no scheme knows.
   */
  readonly passesOn?: true
  /** Revokes the valid credential: for a scheme with `changes`. */
  readonly revoke?: () => Promise<unknown>
}

const ADDRESS = '192.0.2.1'
const AT_ONCE = 200
const KIB_64 = 65_536
const LONGEST_ID = 512

/** Cases for every auth scheme: `for (const one of authKit(open)) it(one.title, one.run)`. Each case opens its own scheme. */
export function authKit(open: () => AuthSubject | Promise<AuthSubject>): KitCase[] {
  const make = caseMaker(open)
  return [...taking(make), ...refusing(make), ...enduring(make)]
}

type Make = ReturnType<typeof caseMaker<AuthSubject>>

/** Calls the scheme like the server, with the headers that it declares. */
const ask = (scheme: AuthScheme, headers: Headers, { ctx = abortable().ctx, isRecheck = false }: AskOptions = {}) => {
  const declared = Object.fromEntries(Object.entries(headers).filter(([name]) => scheme.headers.includes(name)))
  const request = { ...REQUEST, headers: declared, ...(isRecheck && { isRecheck }) }
  return atOnce(outcome(authenticated(scheme, request, ctx)), 'an answer')
}

interface AskOptions {
  readonly ctx?: CallContext
  readonly isRecheck?: boolean
}

/** The request whose credentials the kit checks: `GET /`, without a body. */
const REQUEST = { address: ADDRESS, method: 'GET', path: '/', query: '' } as const

/** Calls the scheme, with the digest of an empty body if it asks for one. */
async function authenticated(
  scheme: AuthScheme,
  request: CredentialRequest,
  ctx: CallContext
): Promise<CredentialHolder | undefined> {
  const answer = await scheme.authenticate(frozen({ ...request }), ctx)
  if (!answer || !('needs' in answer)) return answer
  const bodyDigest = { algorithm: answer.needs, hex: createHash(answer.needs).digest('hex') }
  const second = await scheme.authenticate(frozen({ ...request, bodyDigest }), ctx)
  assert.ok(!second || !('needs' in second), 'it asks for the digest of the body twice')
  return second
}

const goodOf = ({ good }: AuthSubject): GoodCredential => (typeof good === 'function' ? good() : good)

/** The headers of a request with a good credential, or with another value in its place. */
const sent = (good: GoodCredential, value = good.value): Headers => ({ ...good.beside, [good.header]: value })

function taking(make: Make): KitCase[] {
  return [
    make('names a challenge that a header can carry', async ({ scheme }) => {
      assert.match(scheme.challenge, /^[A-Za-z][\w-]*( [\x20-\x7e]+)?$/)
    }),
    make('declares the headers that it reads, including that of its good credential', async subject => {
      const { scheme } = subject
      const { header } = goodOf(subject)
      assertHeaders(scheme)
      assert.ok(scheme.headers.includes(header), `"headers" lacks ${header}: the server would not pass it on`)
    }),
    make('can prepare if its settings are complete, and answers requests without preparing', async subject => {
      const prepared = await atOnce(outcome(Promise.resolve(subject.scheme.prepare?.(abortable().ctx))), 'the end of prepare')
      assert.equal(prepared.error, undefined)
      await assertAccepted(subject)
    }),
    make('returns undefined for a request without a credential of its kind', async ({ scheme }) => {
      const strange = ['Basic dTpw', 'Bearer', 'Bearer of.bad.news', 'Digest username="u"']
      const plain: Headers[] = [{}, { host: 'localhost', cookie: 'session=1', 'x-other': 'x' }]
      for (const headers of [...plain, ...strange.map(value => ({ authorization: value }))]) {
        const { value, failed } = await ask(scheme, headers)
        assert.ok(
          !failed,
          `it refuses a request with the headers ${JSON.stringify(headers)}, which has no credential of its kind: return undefined`
        )
        assert.equal(value, undefined)
      }
    }),
    make('returns the principal of a good credential as plain data', assertAccepted),
    make('returns the same answer again, even if a caller changed the first one', async subject => {
      const { scheme } = subject
      const good = goodOf(subject)
      const { value } = await ask(scheme, sent(good))
      Reflect.set(value ?? {}, 'id', 'another id')
      Reflect.set(value?.scopes ?? [], 0, 'admin')
      if (typeof subject.good === 'function') {
        assertRefused(await ask(scheme, sent(good)), 'a credential that it accepts once')
        const rechecked = await ask(scheme, sent(good), { isRecheck: true })
        assert.ok(!rechecked.failed, 'it refuses a credential that the server checks again: accept it if `isRecheck` is true')
      }
      await assertAccepted(subject)
    }),
  ]
}

/** Checks that the declared headers are valid names. */
export function assertHeaders({ headers }: AuthScheme): void {
  assert.ok(
    Array.isArray(headers) && headers.length > 0,
    'a scheme declares the request headers that it reads: headers: ["x-my-key"]'
  )
  const reserved: readonly string[] = SERVER_HEADERS.names
  for (const header of headers) {
    assert.match(header, /^[a-z0-9!#$%&'*+.^_`|~-]+$/, 'the name of a header, in lower case')
    assert.ok(!reserved.includes(header), `"${header}" belongs to the server: no scheme can read it`)
  }
}

async function assertAccepted(subject: AuthSubject): Promise<void> {
  const good = goodOf(subject)
  const { value, error } = await ask(subject.scheme, sent(good))
  const hint = 'a scheme that accepts each credential once needs `good` as a function, which returns another one each time'
  assert.ok(error === undefined, `it refuses the good credential (${hint}): ${String(error)}`)
  const { expires, ...holder } = value ?? { id: undefined, expires: undefined }
  assert.deepEqual({ ...holder, scopes: [...(value?.scopes ?? [])] }, { id: good.id, scopes: [...good.scopes] })
  assert.ok(expires === undefined || (Number.isFinite(expires) && expires > Date.now()), 'when it expires, in milliseconds')
  assertPlain(value, 'principal')
  assert.ok(good.id.length > 0 && good.id.length <= LONGEST_ID && good.id !== 'anonymous' && good.id !== 'system', 'the id')
}

/** Invalid variants of a credential. `surely`: recognizably of its kind, so the scheme must not pass it on to others. */
function tamperedCredentials(value: string): { readonly what: string; readonly value: string; readonly surely: boolean }[] {
  const secret = value.slice(value.lastIndexOf(' ') + 1)
  const word = value.slice(0, value.length - secret.length)
  const flipped = (part: number) => {
    const at = Math.floor(secret.length * part)
    return `${word}${secret.slice(0, at)}${secret[at] === 'A' ? 'B' : 'A'}${secret.slice(at + 1)}`
  }
  return [
    { what: 'empty', value: '', surely: false },
    { what: 'its word alone', value: word.trim(), surely: false },
    { what: 'one character changed early', value: flipped(0.25), surely: false },
    { what: 'one character changed in the middle', value: flipped(0.5), surely: false },
    { what: 'one character changed late', value: flipped(0.75), surely: true },
    { what: 'cut short', value: value.slice(0, -1), surely: true },
    { what: 'one character longer', value: `${value}A`, surely: true },
    { what: 'the same twice', value: `${value}, ${value}`, surely: true },
    { what: 'good, then a stranger', value: `${value}, Basic dTpw`, surely: true },
    { what: '64 KiB longer', value: value + 'A'.repeat(KIB_64), surely: true },
    { what: '64 KiB of blanks between', value: `${value}${' '.repeat(KIB_64)}A`, surely: true },
    { what: 'not ASCII', value: `${value}\u00e9`, surely: true },
  ]
}

function refusing(make: Make): KitCase[] {
  return [
    make('rejects changed, shortened, doubled and overlong credentials', async subject => {
      const good = goodOf(subject)
      for (const { what, value, surely } of tamperedCredentials(good.value)) {
        const answer = await ask(subject.scheme, sent(good, value))
        assert.equal(answer.value, undefined, `it accepted a credential: ${what}`)
        if (answer.failed || (surely && !subject.passesOn)) assertRefused(answer, what)
      }
    }),
    make('rejects the bad samples', async subject => {
      const bad = Object.entries(subject.bad)
      assert.ok(bad.length > 0, 'pass at least one bad credential to the kit')
      for (const [what, value] of bad) assertNotTaken(subject, await ask(subject.scheme, sent(goodOf(subject), value)), what)
    }),
    make('reports a revoked credential, and rejects it from then on', async subject => {
      const { scheme, revoke } = subject
      assert.equal(
        scheme.changes === undefined,
        revoke === undefined,
        'give the kit revoke for a scheme with changes, for no other'
      )
      if (!scheme.changes || !revoke) return
      const { ctx, abort } = abortable()
      const changes = scheme.changes(ctx)[Symbol.asyncIterator]()
      assert.deepEqual(await atOnce(changes.next(), 'the beginning of the watch'), { value: null, done: false })
      await assertAccepted(subject)
      const nextChange = changes.next()
      const taken = revoke()
      assert.deepEqual(await atOnce(nextChange, 'the news'), { value: null, done: false })
      assertRefused(await ask(scheme, sent(goodOf(subject))), 'taken back')
      await taken
      abort()
      await atOnce(outcome(changes.next()), 'the end of the watch')
    }),
    make('reveals no secret when it rejects', async subject => {
      const good = goodOf(subject)
      const secrets = [good.value, ...Object.values(subject.bad)].map(value => value.slice(value.lastIndexOf(' ') + 1))
      for (const value of [
        ...tamperedCredentials(good.value).map(tamperedCredential => tamperedCredential.value),
        ...Object.values(subject.bad),
      ]) {
        const { error } = await ask(subject.scheme, sent(good, value))
        const text = error === undefined ? '' : allOf(error)
        for (const secret of secrets)
          assert.ok(!text.includes(lastOf(secret)), `a rejection reveals the credential: ${text.slice(0, 300)}`)
      }
    }),
  ]
}

/** A part of a credential that must not leak. */
const lastOf = (secret: string) => secret.slice(-12)

function assertRefused({ value, error, failed }: Awaited<ReturnType<typeof ask>>, what: string): void {
  assert.equal(value, undefined, `it accepted a credential: ${what}`)
  assert.ok(failed, `it returned undefined for a credential of its kind: ${what}`)
  assert.equal(codeOf(error), 'AUTHENTICATION_FAILED', `${what}: ${String(error)}`)
  const { details } = error as { details?: unknown }
  assert.deepEqual(details ?? {}, {}, `${what}: a refusal has no details`)
}

/** Refused, or passed on by a scheme that cannot know that the credential is of its kind. */
function assertNotTaken({ passesOn }: AuthSubject, answer: Awaited<ReturnType<typeof ask>>, what: string): void {
  if (answer.failed || !passesOn) assertRefused(answer, what)
  assert.equal(answer.value, undefined, `a credential was taken: ${what}`)
}

/** All texts of an error and its causes. */
function allOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause, ...own } = error
  return [error.message, JSON.stringify(own), cause === undefined ? '' : allOf(cause)].join('\n')
}

function enduring(make: Make): KitCase[] {
  return [
    make('answers concurrent requests independently', async subject => {
      const bad = Object.values(subject.bad)
      const { id } = goodOf(subject)
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, at) =>
          ask(subject.scheme, sent(goodOf(subject), at % 2 === 0 ? undefined : bad[at % bad.length]))
        )
      )
      for (const [at, answer] of answers.entries()) {
        if (at % 2 === 0) assert.equal(answer.value?.id, id, String(answer.error))
        else assertNotTaken(subject, answer, `one of ${AT_ONCE}`)
      }
    }),
    make('does not start a call whose signal is already aborted', async subject => {
      const { ctx, abort } = abortable()
      abort()
      const { failed, error } = await ask(subject.scheme, sent(goodOf(subject)), { ctx })
      assert.ok(failed, 'it answered a request that was already aborted')
      assert.notEqual(codeOf(error), 'AUTHENTICATION_FAILED', 'an aborted request must not fail with AUTHENTICATION_FAILED')
    }),
    make('is not affected by concurrent requests that abort', async subject => {
      const { ctx, abort } = abortable()
      const left = ask(subject.scheme, sent(goodOf(subject)), { ctx })
      const stays = assertAccepted(subject)
      abort()
      await Promise.all([left, stays])
    }),
  ]
}
