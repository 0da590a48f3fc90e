import { INTEGER, list, nullable, object, ok, STRING, words } from '@svc/api-types'
import { type JsonSchema, svcError } from '@svc/core'
import type { Jobs, Route, Store, StoreAdmin, StoreContents, StoreProbe } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { JOB, jobRecord } from './jobs.ts'

const PATH = '/api/v1/store'

const STATUS: JsonSchema = {
  ...(object({
    kind: { ...(STRING as object), description: 'The engine, such as sqlite.' },
    durable: { type: 'boolean', description: 'Whether acknowledged writes survive a power failure.' },
    scope: { ...(words('process', 'machine', 'cluster') as object), description: 'Which processes share the store.' },
    role: words('primary', 'replica'),
    clock_offset_ms: { ...(INTEGER as object), description: 'The clock of the store minus that of the server.' },
    bytes: { ...(nullable('integer') as object), description: 'Its size; null if the store does not report it.' },
    spaces: {
      ...(list(object({ name: STRING, version: INTEGER })) as object),
      description: 'The data of plugins, with the version of its schema.',
    },
    can_back_up: { type: 'boolean', description: 'Whether svc can back it up with POST /api/v1/store/backup.' },
  }) as object),
  title: 'StoreStatus',
}

interface StoreServices {
  readonly store: Store
  readonly admin?: StoreAdmin | undefined
  readonly jobs?: Jobs | undefined
}

/** Routes for the store. Backups are jobs, so a server without the service `jobs` has no route for them. */
export const createStoreRoutes = ({ store, admin, jobs }: StoreServices, publish: Publish): Record<string, Route> => ({
  store: {
    method: 'GET',
    path: PATH,
    summary: 'Probe the store and read its status',
    scope: 'read',
    responses: ok('The status.', STATUS),
    async handle(_request, ctx) {
      const probed = await store.probe(ctx)
      return { body: statusRecord(probed, await admin?.contents(ctx), jobs !== undefined) }
    },
  },
  ...(admin && jobs ? { store_backup: backupRoute(admin, jobs, publish) } : {}),
})

const backupRoute = (admin: StoreAdmin, jobs: Jobs, publish: Publish): Route => ({
  method: 'POST',
  path: `${PATH}/backup`,
  summary: 'Back up the store into the svc home, as a job',
  description:
    'The server chooses the file: `backups/<time>.db` of the svc home. The result of the job names the file and its content. While a backup runs, the answer is its job.',
  scope: 'admin',
  responses: { '202': { description: 'The job.', schema: JOB } },
  async handle(_request, ctx) {
    const { backup } = await admin.contents(ctx)
    if (backup === undefined) throw noBackup()
    const running = await jobs.list({ kind: backup, state: 'running', limit: 1 }, ctx)
    const open = running.jobs[0] ?? (await jobs.list({ kind: backup, state: 'queued', limit: 1 }, ctx)).jobs[0]
    const job = open ?? (await jobs.add({ kind: backup }, ctx))
    if (!open) publish({ type: 'store_backup_started', subject: 'store', after: { job: job.id } }, ctx)
    return { status: 202, headers: { location: `/api/v1/jobs/${job.id}` }, body: jobRecord(job) }
  },
})

const noBackup = () =>
  svcError('INVALID_VALUE', 'svc cannot back up this store; use the tools of its database', {
    details: { field: 'store', reason: 'svc cannot back it up' },
  })

const statusRecord = (
  { kind, durable, scope, role, clockOffsetMs }: StoreProbe,
  contents: StoreContents | undefined,
  hasJobs: boolean
) => ({
  kind,
  durable,
  scope,
  role,
  clock_offset_ms: Math.round(clockOffsetMs),
  bytes: contents?.bytes ?? null,
  spaces: (contents?.spaces ?? []).map(({ name, version }) => ({ name, version })),
  can_back_up: hasJobs && contents?.backup !== undefined,
})
