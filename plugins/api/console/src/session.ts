import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type { Json, Space, Store } from '@svc/core/contracts'
import { changeRecord } from '@svc/storage-kit/records'

/** How long a login lasts. */
export const SESSION_MS = 12 * 3_600_000
/** How long a one-time code of `svc console` lasts. */
export const CODE_MS = 30_000

const KEYS = 'console_keys'
const CODES = 'console_codes'
const ENDED = 'console_ended'
/** The record with the sealing keys. */
const CURRENT = 'current'

const SPACE: Space = {
  name: 'console',
  version: 1,
  collections: {
    [KEYS]: {},
    [CODES]: { indexes: { by_expires: ['expires'] } },
    // a restored backup must not revive a session that has ended
    [ENDED]: { indexes: { by_until: ['until'] }, watched: true, lasting: true },
  },
}

/** What a cookie contains, sealed. */
interface Session {
  readonly id: string
  /** The key or token of the operator. */
  readonly credential: string
  /** Unix time in milliseconds. */
  readonly expires: number
}

interface SealingKey {
  readonly id: string
  /** Base64. */
  readonly bytes: string
  readonly created: number
}

/** Record `current`: the newest key first. `realm` tells the cookies of several servers on one host apart. */
interface KeyRing {
  readonly realm: string
  readonly keys: readonly SealingKey[]
}

/** Login sessions: each is a cookie that only this server can open. The store has the sealing keys, codes, and sessions that have ended. */
export interface Sessions {
  readonly cookie: string
  /** The name of another cookie of this server. */
  cookieFor(purpose: string): string
  /** Returns the value of the cookie for a credential. */
  seal(credential: string, expires: number): Promise<string>
  /** Opens a cookie. `undefined`: forged, expired, or ended. */
  open(value: string, ctx: CallContext): Promise<Session | undefined>
  end(session: Session, ctx: CallContext): Promise<void>
  /** Yields each time that a session ends, in any process. */
  endings(ctx: CallContext): AsyncIterable<null>
  /** Seals a text for a purpose. Only this server can open it, for a day or two. */
  sealText(purpose: string, text: string): Promise<string>
  /** `undefined`: forged, of another purpose, or too old. */
  openText(purpose: string, value: string): Promise<string | undefined>
  /** A word that only this server can make of a text. Others cannot guess it; it is valid for a day or two. */
  sign(text: string): Promise<string>
  isSigned(text: string, word: string): Promise<boolean>
  /** Whether a one-time code is valid. */
  knows(code: string, ctx: CallContext): Promise<boolean>
  /** Uses a one-time code up. False: it is not valid any more. */
  use(code: string, ctx: CallContext): Promise<boolean>
}

/** The purpose of the texts in cookies of sessions. */
const SESSION = 'session'
const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
/** Age at which a key seals no new cookies. */
const ROTATE_MS = 24 * 3_600_000
/** Age at which a key opens no cookies: every cookie that it has sealed has expired. */
const RETIRE_MS = ROTATE_MS + SESSION_MS
/** An unknown key id makes the worker read the keys again, at most this often. */
const REREAD_MS = 1_000
/** Time for which a worker trusts that a session has not ended. */
export const FRESH_MS = 500
const MOST_REMEMBERED = 1_000
const COOKIE_FORM = /^1\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]{40,8192})$/
const SIGNED_FORM = /^([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]{43})$/
const CODE_FORM = /^console_[A-Za-z0-9_-]{43}$/
const MOST_EXPIRED = 100

export const random = (bytes: number) => randomBytes(bytes).toString('base64url')
export const digestOf = (text: string) => hash('sha256', text)

export const isCode = (text: string): boolean => CODE_FORM.test(text)

/** Opens the space and reads or creates the keys. */
export async function createSessions(store: Store, lasting: CallContext): Promise<Sessions> {
  await store.open(SPACE, lasting)
  let ring = await rotate(store, lasting)
  let readAt = performance.now()
  /** Sessions that were looked up recently, and when. */
  const alive = new Map<string, number>()

  const current = async (): Promise<SealingKey> => {
    if (isOld(ring)) ring = await rotate(store, lasting)
    return ring.keys[0]!
  }
  const keyOf = async (id: string): Promise<SealingKey | undefined> => {
    const find = () => ring.keys.find(key => key.id === id && Date.now() - key.created < RETIRE_MS)
    const found = find()
    if (found || performance.now() - readAt < REREAD_MS) return found
    readAt = performance.now()
    ring = await rotate(store, lasting)
    return find()
  }
  const hasEnded = async ({ id }: Session, ctx: CallContext): Promise<boolean> => {
    const before = alive.get(id)
    if (before !== undefined && performance.now() - before < FRESH_MS) return false
    const at = performance.now()
    if (await store.get(ENDED, id, ctx)) return true
    if (alive.size >= MOST_REMEMBERED) alive.clear()
    alive.set(id, at)
    return false
  }
  const { sealText, openText } = sealing(current, keyOf)
  return {
    cookie: `svc_console_${ring.realm}`,
    cookieFor: purpose => `svc_console_${purpose}_${ring.realm}`,
    sealText,
    openText,
    seal: (credential, expires) => sealText(SESSION, JSON.stringify({ id: random(16), credential, expires } satisfies Session)),
    async open(value, ctx) {
      const text = await openText(SESSION, value)
      const session = text === undefined ? undefined : (JSON.parse(text) as Session)
      if (!session || session.expires <= Date.now() || (await hasEnded(session, ctx))) return undefined
      return session
    },
    async end({ id, expires }, ctx) {
      alive.delete(id)
      await prune(store, { collection: ENDED, index: 'by_until' }, ctx)
      await store.batch([{ op: 'put', collection: ENDED, key: id, value: { until: expires } }], {}, ctx)
    },
    async *endings(ctx) {
      for await (const _ of store.watch(ENDED, ctx)) {
        alive.clear()
        yield null
      }
    },
    ...signing(current, keyOf),
    ...codesOf(store),
  }
}

type FindKey = (id: string) => Promise<SealingKey | undefined>

/** Seals and opens texts with the keys of the store. */
function sealing(current: () => Promise<SealingKey>, keyOf: FindKey): Pick<Sessions, 'sealText' | 'openText'> {
  const associated = (id: string, purpose: string) => JSON.stringify(['svc.console', 1, id, purpose])
  return {
    async sealText(purpose, text) {
      const { id, bytes } = await current()
      return `1.${id}.${encrypt(text, Buffer.from(bytes, 'base64'), associated(id, purpose))}`
    },
    async openText(purpose, value) {
      const [, id = '', sealed = ''] = COOKIE_FORM.exec(value) ?? []
      const key = id === '' ? undefined : await keyOf(id)
      return key && decrypt(sealed, Buffer.from(key.bytes, 'base64'), associated(id, purpose))
    },
  }
}

/** Signs texts, and checks such signatures. */
function signing(current: () => Promise<SealingKey>, keyOf: FindKey): Pick<Sessions, 'sign' | 'isSigned'> {
  return {
    async sign(text) {
      const key = await current()
      return `${key.id}.${macOf(key, text).toString('base64url')}`
    },
    async isSigned(text, word) {
      const [, id = '', mac = ''] = SIGNED_FORM.exec(word) ?? []
      const key = id === '' ? undefined : await keyOf(id)
      return key !== undefined && timingSafeEqual(macOf(key, text), Buffer.from(mac, 'base64url'))
    },
  }
}

/** Checks and uses one-time codes. */
function codesOf(store: Store): Pick<Sessions, 'knows' | 'use'> {
  return {
    async knows(code, ctx) {
      const record = await store.get(CODES, digestOf(code), ctx)
      return record !== undefined && expiryOf(record.value) > Date.now()
    },
    async use(code, ctx) {
      const key = digestOf(code)
      const record = await store.get(CODES, key, ctx)
      if (!record) return false
      // of two requests with the same code, the version lets one delete it
      const deleted = await store.batch([{ op: 'delete', collection: CODES, key, ifVersion: record.version }], {}, ctx).then(
        () => true,
        () => false
      )
      return deleted && expiryOf(record.value) > Date.now()
    },
  }
}

/** Creates a one-time code. The store has only its digest. */
export async function makeCode(store: Store, ctx: CallContext): Promise<{ readonly code: string; readonly expires: number }> {
  await store.open(SPACE, ctx)
  await prune(store, { collection: CODES, index: 'by_expires' }, ctx)
  const code = `console_${random(32)}`
  const expires = Date.now() + CODE_MS
  await store.batch([{ op: 'put', collection: CODES, key: digestOf(code), value: { expires }, ifVersion: 0 }], {}, ctx)
  return { code, expires }
}

const expiryOf = (value: Json) => Number((value as { readonly expires?: number } | null)?.expires ?? 0)

/** Deletes records whose time is over. */
export async function prune(
  store: Store,
  of: { readonly collection: string; readonly index: string },
  ctx: CallContext
): Promise<void> {
  const { records } = await store.range(of.collection, { index: of.index, to: Date.now(), limit: MOST_EXPIRED }, ctx)
  const ops = records.map(({ key }) => ({ op: 'delete' as const, collection: of.collection, key }))
  if (ops.length > 0) await store.batch(ops, {}, ctx)
}

const isOld = ({ keys: [newest] }: KeyRing) => !newest || Date.now() - newest.created >= ROTATE_MS

/** Returns the keys. Adds a new one if the newest is old, and removes those that are no longer needed. */
async function rotate(store: Store, ctx: CallContext): Promise<KeyRing> {
  const place = { collection: KEYS, key: CURRENT }
  const change = ({ value }: { readonly value: Json | undefined }): Json | undefined => {
    const ring = (value as unknown as KeyRing | undefined) ?? { realm: randomBytes(4).toString('hex'), keys: [] }
    if (!isOld(ring)) return undefined
    const key: SealingKey = { id: random(8), bytes: randomBytes(32).toString('base64'), created: Date.now() }
    const kept = ring.keys.filter(({ created }) => Date.now() - created < RETIRE_MS)
    return { realm: ring.realm, keys: [key, ...kept] } as unknown as Json
  }
  return (await changeRecord(store, place, change, ctx)).value as unknown as KeyRing
}

/** AES-256-GCM. `associated` says what the text is for: opening it for something else fails. */
export function encrypt(text: string, key: Uint8Array, associated: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(associated))
  const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), data]).toString('base64url')
}

/** `undefined`: forged or damaged. */
export function decrypt(sealed: string, key: Uint8Array, associated: string): string | undefined {
  const all = Buffer.from(sealed, 'base64url')
  const [iv, tag, data] = [
    all.subarray(0, IV_BYTES),
    all.subarray(IV_BYTES, IV_BYTES + TAG_BYTES),
    all.subarray(IV_BYTES + TAG_BYTES),
  ]
  try {
    const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(associated)).setAuthTag(tag)
    return Buffer.concat([decipher.update(data), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

/** With a key of its own, derived from the sealing key. */
function macOf({ bytes }: SealingKey, text: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', Buffer.from(bytes, 'base64'), '', 'svc.console.sign', 32))
  return createHmac('sha256', key).update(text).digest()
}
