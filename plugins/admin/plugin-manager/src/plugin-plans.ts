import { setTimeout } from 'node:timers/promises'
import { type CallContext, codeOf, type HostReport, svcError } from '@svc/core'
import type { Job, JobKind, Jobs, JobStep, Json, Peers, PluginChange, PluginPlan, Space, Store } from '@svc/core/contracts'
import { archiveGone, changesImpossible, forClients, isLasting, planChanged, plainText, planUnknown } from './errors.ts'
import { ARCHIVES, dropArchive, shareArchive, sharedArchive } from './shared-archives.ts'

/** The job kind that applies plans. */
export const APPLY = 'plugins.apply'

/** Only this plugin adds these jobs: it checks the plan again first. */
const INTERNAL = crypto.randomUUID()

const COLLECTION = 'plugin_plans'
export const SPACE: Space = {
  name: 'plugin_plans',
  version: 1,
  collections: { [COLLECTION]: {}, [ARCHIVES]: {}, plugin_sets: {} },
}

/** Plans that are kept, and how long. An applied plan is kept longer, for its job. */
const [MOST, LASTS_MS, APPLIED_MS] = [32, 10 * 60_000, 24 * 3_600_000]
/** A job waits for a change of another process. */
const BUSY_TRIES = 30

/** Plans and applies changes on this machine: `src/commands/change/on-server.ts`, which needs the command line. */
type ChangeOnServer = typeof import('./commands/change/on-server.ts')

type Report = (message: string) => void

type KeptChange = Parameters<ChangeOnServer['planOnServer']>[0]

interface PlanRecord {
  readonly change: KeptChange
  readonly plan: PluginPlan
  /** Unix milliseconds. */
  readonly expiresAt: number
  /** The job that applies it. */
  readonly job?: string
  /** In a cluster: the number of parts of its archive in the store. */
  readonly archiveParts?: number
}

interface PlansOptions {
  readonly store: Store
  readonly jobs: Jobs
  readonly isShared: boolean
}

export interface PluginPlans {
  plan(change: PluginChange, ctx: CallContext): Promise<PluginPlan>
  apply(hash: string, ctx: CallContext): Promise<Job>
  /** The job kind; absent where changes are impossible. */
  readonly kind?: JobKind
}

interface ServerServices {
  readonly store: Store | undefined
  readonly jobs: Jobs | undefined
  readonly peers: Peers | undefined
  /** Whether all servers of the cluster take over its plugins. */
  readonly isShared?: boolean
}

/** The plans of this server, which say why there are none where changes are impossible. */
export function plansFor(
  { clusterId, serverId }: Pick<HostReport, 'clusterId' | 'serverId'>,
  { store, jobs, peers, isShared = false }: ServerServices
): PluginPlans {
  if (process.env.SVC_PLUGINS) return withoutPlans('its plugins are a part of its build')
  if (peers === undefined) return withoutPlans('it runs without a supervisor, so it cannot reload')
  if (store === undefined || jobs === undefined) return withoutPlans('it has no background jobs')
  if (clusterId !== serverId && !isShared) return withoutPlans('it is a server of a cluster; change each of its servers')
  return createPluginPlans({ store, jobs, isShared })
}

/** For a server whose plugins cannot be changed over HTTP. */
const withoutPlans = (reason: string): PluginPlans => ({
  plan: () => Promise.reject(changesImpossible(reason)),
  apply: () => Promise.reject(changesImpossible(reason)),
})

/** The plans in the store, which all workers share, and the jobs that apply them. */
function createPluginPlans({ store, jobs, isShared }: PlansOptions): PluginPlans {
  const read = async (hash: string, ctx: CallContext): Promise<{ record: PlanRecord; version: number }> => {
    const stored = await store.get(COLLECTION, hash, ctx)
    const record = stored?.value as unknown as PlanRecord | undefined
    if (!stored || !record || record.expiresAt <= Date.now()) throw planUnknown(hash)
    return { record, version: stored.version }
  }
  const planned = async (change: KeptChange, ctx: CallContext): Promise<PluginPlan> => {
    const { planOnServer } = await onServer()
    try {
      return await planOnServer(change, { signal: ctx.signal, lastsMs: LASTS_MS })
    } catch (error) {
      throw forClients(error, change)
    }
  }
  /** Plans again, and compares. */
  const checked = async (record: PlanRecord, ctx: CallContext): Promise<void> => {
    const { change, plan } = record
    await bringArchive(store, record, ctx)
    const again = await planned(change, ctx)
    if (again.hash !== plan.hash) throw planChanged((await onServer()).differencesOf(plan, again))
  }
  return {
    async plan(change, ctx) {
      const kept = await (await onServer()).keepArchive(change)
      const plan = await planned(kept, ctx)
      await makeRoom(store, ctx)
      const { archive } = change
      const isMoved = isShared && archive !== undefined && kept.archive !== undefined
      const archiveParts = isMoved ? await shareArchive(store, kept.archive, archive, ctx) : undefined
      const record: PlanRecord = {
        change: { ...kept, name: plan.name },
        plan,
        expiresAt: Date.parse(plan.expires_at),
        ...(archiveParts === undefined ? {} : { archiveParts }),
      }
      await store.batch([{ op: 'put', collection: COLLECTION, key: plan.hash, value: record as unknown as Json }], {}, ctx)
      return plan
    },
    async apply(hash, ctx) {
      const { record, version } = await read(hash, ctx)
      if (record.job !== undefined) return jobs.get(record.job, ctx)
      await checked(record, ctx)
      // a plan that was made again has the same hash, but another job
      const key = `${hash}.${record.plan.created_at}`
      const job = await jobs.add({ kind: APPLY, input: { hash }, key, internal: INTERNAL }, ctx)
      const applied: PlanRecord = { ...record, expiresAt: Date.now() + APPLIED_MS, job: job.id }
      await store
        .batch([{ op: 'put', collection: COLLECTION, key: hash, value: applied as unknown as Json, ifVersion: version }], {}, ctx)
        .catch((error: unknown) => {
          // another worker has just stored the same job
          if (codeOf(error) !== 'STORE_CONFLICT') throw error
        })
      return job
    },
    kind: createKind(async (hash, ctx) => {
      const { record } = await read(hash, ctx)
      await bringArchive(store, record, ctx)
      return record
    }),
  }
}

/** Another node can have made the plan: its archive then lies in the store. */
async function bringArchive(store: Store, { change, archiveParts }: PlanRecord, ctx: CallContext): Promise<void> {
  const { hasArchive, keepArchive } = await onServer()
  if (archiveParts === undefined || change.archive === undefined || hasArchive(change.archive)) return
  const archive = await sharedArchive(store, change.archive, archiveParts, ctx)
  const kept = await keepArchive({ ...change, archive })
  if (kept.archive !== change.archive) throw archiveGone()
}

/** The job kind, whose input names a plan. */
const createKind = (recordOf: (hash: string, ctx: CallContext) => Promise<PlanRecord>): JobKind => ({
  description:
    'Applies a plan of the installed plugins, and reloads the server. Rolls back when it cannot start with the change.',
  input: {
    type: 'object',
    properties: { hash: { type: 'string', pattern: '^[0-9a-f]{64}$' } },
    required: ['hash'],
    additionalProperties: false,
  },
  internal: INTERNAL,
  concurrency: 1,
  timeoutMs: 15 * 60_000,
  attempts: 3,
  async *run(task, ctx) {
    const { hash } = task.input as { readonly hash: string }
    const { applyOnServer } = await onServer()
    const apply = async (report: Report) => {
      const record = await recordOf(hash, ctx)
      const { action, name, version } = record.change
      report(`applying the plan: ${action} ${name}${version === undefined ? '' : `@${version}`}`)
      const result = await applyOnServer(record, { signal: ctx.signal, report })
      report('applied the plan')
      return result
    }
    yield* reported(report => applyPatiently(() => apply(report), report, ctx))
  },
})

async function onServer(): Promise<ChangeOnServer> {
  try {
    return await import('./commands/change/on-server.ts')
  } catch (error) {
    if (codeOf(error) === 'ERR_MODULE_NOT_FOUND') throw changesImpossible('the package @svc/cli is not installed')
    throw error
  }
}

/** Removes expired plans, and the oldest one when there are too many. */
async function makeRoom(store: Store, ctx: CallContext): Promise<void> {
  const { records } = await store.range(COLLECTION, { limit: 1000 }, ctx)
  const now = Date.now()
  const plans = records.map(({ key, value }) => ({ key, ...(value as unknown as PlanRecord) }))
  const live = plans.filter(({ expiresAt }) => expiresAt > now).sort((a, b) => a.expiresAt - b.expiresAt)
  const gone = [...plans.filter(({ expiresAt }) => expiresAt <= now), ...live.slice(0, Math.max(0, live.length - MOST + 1))]
  if (gone.length === 0) return
  const kept = new Set(plans.filter(plan => !gone.includes(plan)).map(({ change }) => change.archive))
  const archives = gone.flatMap(({ change: { archive }, archiveParts = 0 }) =>
    archive === undefined || kept.has(archive) ? [] : dropArchive(archive, archiveParts)
  )
  await store.batch([...gone.map(({ key }) => ({ op: 'delete' as const, collection: COLLECTION, key })), ...archives], {}, ctx)
}

/** Another command can hold the plugins for some seconds. Other errors end the job, except those that pass. */
async function applyPatiently(apply: () => Promise<Json>, report: Report, { signal }: CallContext): Promise<Json> {
  for (let left = BUSY_TRIES; ; left--) {
    try {
      return await apply()
    } catch (error) {
      signal.throwIfAborted()
      if (codeOf(error) !== 'PLUGIN_SET_BUSY' || left === 0) throw asFailure(error)
      if (left === BUSY_TRIES) report('another command changes the plugins; waiting until it ends')
      await setTimeout(1000, undefined, { signal })
    }
  }
}

/** The error of the job: without paths, and whether another attempt makes sense. */
function asFailure(error: unknown): unknown {
  const { details = {} } = Object(error) as { details?: object }
  return svcError(codeOf(error) ?? 'INTERNAL_ERROR', plainText(error), {
    cause: error,
    details: { ...details, ...(isLasting(error) ? { retryable: false } : {}) },
  })
}

/** The steps of a work as progress and log, then its result. */
async function* reported(work: (report: Report) => Promise<Json>): AsyncGenerator<JobStep, void> {
  const steps: string[] = []
  let ring = Promise.withResolvers<void>()
  const done = work(message => {
    steps.push(message)
    ring.resolve()
  })
  let isOver = false
  const ended = done.then(
    () => void (isOver = true),
    () => void (isOver = true)
  )
  for (let at = 0; ; ) {
    for (; at < steps.length; at++) {
      yield { type: 'progress', progress: at + 1, message: steps[at]! }
      yield { type: 'log', level: 'info', message: steps[at]! }
    }
    if (isOver) break
    await Promise.race([ring.promise, ended])
    ring = Promise.withResolvers<void>()
  }
  yield { type: 'result', value: await done }
}
