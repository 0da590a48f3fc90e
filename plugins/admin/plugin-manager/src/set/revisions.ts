import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rm, stat } from 'node:fs/promises'
import { type CallContext, codeOf, type Config, type Log, type LogOptions, schema, type SvcError } from '@svc/core'
import type { Fence, Json, Space, Store, StoreOp } from '@svc/core/contracts'
import { keepLease } from '@svc/storage-kit'
import { revisionConflict, revisionDamaged, revisionInvalid, revisionTooLarge } from './errors.ts'

// The installed plugins of a cluster: revisions in the store that all its nodes share.

const [REVISIONS, CHUNKS, UPLOADS] = ['plugin_revisions', 'plugin_chunks', 'plugin_uploads'] as const
/** A revision is written last, after its chunks. `plugin_uploads` names the chunks of one that is being written. */
export const REVISION_SPACE: Space = {
  name: 'plugin_revisions',
  version: 1,
  collections: { [REVISIONS]: { watched: true }, [CHUNKS]: {}, [UPLOADS]: {} },
}

/** Bytes of a chunk: as Base64 in JSON it is far below the limit of a value, and no batch blocks the writer of a store for long. */
const CHUNK_BYTES = 256 * 1024
/** Limit of a packed set. */
const MOST_BYTES = 256 * 1024 ** 2
/** Revisions that the store keeps. */
const KEPT = 5
/** The keys sort by number. */
const DIGITS = 12
const LEASE = 'plugin_revisions'
const [LEASE_MS, LEASE_WAIT_MS] = [30_000, 60_000]

/** The installed plugins of a cluster at one time, as the store has them. */
export interface Revision {
  /** From 1, without gaps. */
  readonly revision: number
  /** SHA-256 of the packed set in hex, which contains its lock; '' without plugins. */
  readonly sha256: string
  readonly bytes: number
  /** SHA-256 of each chunk of the packed set, which is its key. */
  readonly chunks: readonly string[]
  /** What it contains, to be shown: only the packed set counts. */
  readonly plugins: readonly string[]
  /** The machine and user that wrote it. */
  readonly by: string
  /** In ISO 8601. */
  readonly at: string
  /** The version of svc that wrote it. */
  readonly version: string
  /** `linux-x64`: packages with native code can fit only this platform. */
  readonly platform: string
}

/** What a node says about a revision that it writes. */
export type RevisionFacts = Pick<Revision, 'plugins' | 'by' | 'at' | 'version' | 'platform'>

const text = { type: 'string', maxLength: 1000 } as const
const hash = { type: 'string', pattern: '^[0-9a-f]{64}$' } as const
const revisionSchema = schema<Revision>({
  type: 'object',
  properties: {
    revision: { type: 'integer', minimum: 1 },
    sha256: { anyOf: [hash, { const: '' }] },
    bytes: { type: 'integer', minimum: 0 },
    chunks: { type: 'array', items: hash },
    plugins: { type: 'array', items: text },
    by: text,
    at: text,
    version: text,
    platform: text,
  },
  required: ['revision', 'sha256', 'bytes', 'chunks', 'plugins', 'by', 'at', 'version', 'platform'],
})

/** The revisions of one cluster in a store, which several can share. */
export interface RevisionStore {
  readonly store: Store
  /** `HostReport.clusterId`. */
  readonly cluster: string
}

const keyOf = (cluster: string, revision: number) => `${cluster}/${String(revision).padStart(DIGITS, '0')}`
/** `0` comes after `/`. */
const keysOf = (cluster: string) => ({ from: `${cluster}/`, to: `${cluster}0`, reverse: true }) as const
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** The newest revision, or undefined. Its packed set is not checked. Throws PLUGIN_REVISION_INVALID, and the errors of the store. */
export async function newestRevision({ store, cluster }: RevisionStore, ctx: CallContext): Promise<Revision | undefined> {
  const [record] = (await store.range(REVISIONS, { ...keysOf(cluster), limit: 1 }, ctx)).records
  if (record === undefined) return undefined
  const [problem] = revisionSchema.check(record.value)
  const revision = record.value as unknown as Revision
  if (problem) throw revisionInvalid(record.key, `${problem.path} ${problem.message}`)
  if (keyOf(cluster, revision.revision) !== record.key) throw revisionInvalid(record.key, 'it has another number')
  return revision
}

/** Calls `changed` when the store has another newest revision, until the signal aborts. */
export async function watchRevisions(store: Store, changed: () => void, ctx: CallContext): Promise<void> {
  for await (const _ of store.watch(REVISIONS, ctx)) changed()
}

/**
 * Writes the packed set in `file` as the revision after `base`; without a file, a set without plugins. One process writes at a
 * time. Throws PLUGIN_SET_CONFLICT if another one has written that revision, PLUGIN_SET_TOO_LARGE, and the errors of the store.
 */
export async function writeRevision(
  { store, cluster }: RevisionStore,
  { base, file, facts }: { readonly base: number; readonly file?: string | undefined; readonly facts: RevisionFacts },
  ctx: CallContext
): Promise<Revision> {
  const request = { holder: `plugins:${randomUUID()}`, ttlMs: LEASE_MS, waitMs: LEASE_WAIT_MS }
  const packed = file === undefined ? NOTHING : await measure(file)
  await using kept = await keepLease(store, LEASE, request, ctx)
  const revision: Revision = { revision: base + 1, ...packed, ...facts }
  const newest = await newestRevision({ store, cluster }, kept.ctx)
  if ((newest?.revision ?? 0) !== base) throw revisionConflict(revision.revision, newest)
  // only links have changed, which belong to one machine
  if (newest?.sha256 === packed.sha256) return newest
  const writer = { store, cluster, fence: kept.fence, ctx: kept.ctx }
  await sweepUploads(writer)
  if (file !== undefined) await upload(writer, file, revision)
  try {
    await store.batch(
      [
        {
          op: 'put',
          collection: REVISIONS,
          key: keyOf(cluster, revision.revision),
          value: revision as unknown as Json,
          ifVersion: 0,
        },
        { op: 'delete', collection: UPLOADS, key: revision.sha256 || EMPTY_KEY },
      ],
      { fence: kept.fence },
      kept.ctx
    )
  } catch (error) {
    if (codeOf(error) === 'STORE_CONFLICT')
      throw revisionConflict(revision.revision, await newestRevision({ store, cluster }, ctx))
    throw error
  }
  await dropOld(writer).catch(() => {}) // the next revision drops them
  return revision
}

const NOTHING = { sha256: '', bytes: 0, chunks: [] } as const
const EMPTY_KEY = 'none'

interface RevisionWriter extends RevisionStore {
  readonly fence: Fence
  readonly ctx: CallContext
}

async function measure(file: string): Promise<Pick<Revision, 'sha256' | 'bytes' | 'chunks'>> {
  const { size } = await stat(file)
  if (size > MOST_BYTES) throw revisionTooLarge(size, MOST_BYTES)
  const whole = createHash('sha256')
  const chunks: string[] = []
  for await (const chunk of chunksOf(file)) {
    whole.update(chunk)
    chunks.push(sha256(chunk))
  }
  return { sha256: whole.digest('hex'), bytes: size, chunks }
}

async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  await using handle = await open(file)
  for (let at = 0; ; at += CHUNK_BYTES) {
    const chunk = await readAt(handle, at)
    if (chunk.length === 0) return
    yield chunk
  }
}

/** A read can return less than it is asked for. */
async function readAt(handle: FileHandle, at: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let length = 0
  for (let read = -1; read !== 0 && length < CHUNK_BYTES; length += read)
    read = (await handle.read(buffer, length, CHUNK_BYTES - length, at + length)).bytesRead
  return buffer.subarray(0, length)
}

/** Writes also the chunks that the store has: they can be damaged. */
async function upload({ store, fence, ctx }: RevisionWriter, file: string, { sha256: key, chunks }: Revision): Promise<void> {
  const put = (collection: string, key: string, value: Json) =>
    store.batch([{ op: 'put', collection, key, value }], { fence }, ctx)
  await put(UPLOADS, key, { chunks })
  let at = 0
  for await (const chunk of chunksOf(file)) await put(CHUNKS, chunks[at++]!, { bytes: Buffer.from(chunk).toString('base64') })
}

/** Removes the chunks of revisions whose writer was killed. */
async function sweepUploads(writer: RevisionWriter): Promise<void> {
  const { records } = await writer.store.range(UPLOADS, { limit: 100 }, writer.ctx)
  if (records.length === 0) return
  const chunks = records.flatMap(({ value }) => chunksIn(value))
  await dropChunks(writer, chunks, await allRevisions(writer))
  await inBatches(
    writer,
    records.map(({ key }) => ({ op: 'delete', collection: UPLOADS, key }))
  )
}

const chunksIn = (value: Json): readonly string[] => {
  const { chunks } = Object(value) as { readonly chunks?: unknown }
  return Array.isArray(chunks) ? chunks.filter(chunk => typeof chunk === 'string') : []
}

interface StoredRevision {
  readonly chunks: readonly string[]
}

/** Those of all clusters. */
async function allRevisions({ store, ctx }: Pick<RevisionWriter, 'store' | 'ctx'>): Promise<StoredRevision[]> {
  const { records } = await store.range(REVISIONS, { limit: 1000 }, ctx)
  return records.map(({ value }) => ({ chunks: chunksIn(value) }))
}

/** Removes the revisions that nothing needs any more. */
async function dropOld(writer: RevisionWriter): Promise<void> {
  const { store, cluster, ctx } = writer
  const { records } = await store.range(REVISIONS, { ...keysOf(cluster), limit: 100 }, ctx)
  const old = records.slice(KEPT)
  if (old.length === 0) return
  await inBatches(
    writer,
    old.map(({ key }) => ({ op: 'delete', collection: REVISIONS, key }))
  )
  const chunks = old.flatMap(({ value }) => chunksIn(value))
  await dropChunks(writer, chunks, await allRevisions(writer))
}

async function dropChunks(writer: RevisionWriter, chunks: readonly string[], kept: readonly StoredRevision[]): Promise<void> {
  const needed = new Set(kept.flatMap(revision => revision.chunks))
  const gone = [...new Set(chunks)].filter(chunk => !needed.has(chunk))
  await inBatches(
    writer,
    gone.map(key => ({ op: 'delete', collection: CHUNKS, key }))
  )
}

/** Operations of a batch. */
const AT_ONCE = 200

async function inBatches({ store, fence, ctx }: RevisionWriter, ops: readonly StoreOp[]): Promise<void> {
  for (let at = 0; at < ops.length; at += AT_ONCE) await store.batch(ops.slice(at, at + AT_ONCE), { fence }, ctx)
}

/**
 * Writes the packed set of a revision into a new file. Checks the size before it reads anything, each chunk, and the whole.
 * Throws PLUGIN_SET_DAMAGED, PLUGIN_SET_TOO_LARGE, and the errors of the store.
 */
export async function fetchRevision(store: Store, revision: Revision, file: string, ctx: CallContext): Promise<void> {
  const { sha256: expected, bytes, chunks } = revision
  if (bytes > MOST_BYTES) throw revisionTooLarge(bytes, MOST_BYTES)
  if (chunks.length !== Math.ceil(bytes / CHUNK_BYTES)) throw revisionDamaged(revision, 'its size does not fit its chunks')
  const whole = createHash('sha256')
  let written = 0
  try {
    await using handle = await open(file, 'wx', 0o600)
    for (const [at, key] of chunks.entries()) {
      const chunk = await chunkOf(store, key, ctx)
      if (chunk === undefined || sha256(chunk) !== key)
        throw revisionDamaged(
          revision,
          `chunk ${at + 1} of ${chunks.length} ${chunk === undefined ? 'is missing' : 'was changed'}`
        )
      whole.update(chunk)
      written += chunk.length
      if (written > bytes) break
      await handle.write(chunk)
    }
    if (written !== bytes || whole.digest('hex') !== expected) throw revisionDamaged(revision, 'its hash differs')
    await handle.sync()
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
}

async function chunkOf(store: Store, key: string, ctx: CallContext): Promise<Uint8Array | undefined> {
  const record = await store.get(CHUNKS, key, ctx)
  const { bytes } = Object(record?.value) as { readonly bytes?: unknown }
  return typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : undefined
}

/** What became of a revision: `current` if the node already had it. */
export interface TakenOver {
  readonly result: 'current' | 'taken' | 'refused'
  readonly revision: Revision | undefined
  /** Names and versions before. */
  readonly before: readonly string[]
  /** Why it was refused. */
  readonly problems: readonly SvcError[]
}

/** What a start has found out about the plugins of its cluster. */
export interface CaughtUp {
  /** Whether other plugins are installed than before. */
  readonly hasChanged: boolean
  /** Logs it, once there is a log. */
  report(log: Log): void
}

/**
 * Before a server starts: takes over the plugins that were changed on other nodes. Undefined outside of a cluster, and if nothing
 * was changed. Throws only if PostgreSQL does not answer: the start would wait for it once more. `@svc/plugin-manager/cluster`
 * exports it.
 */
export type CatchUp = (
  config: Pick<Config, 'value' | 'plugins'>,
  signal: AbortSignal,
  log: LogOptions
) => Promise<CaughtUp | undefined>
