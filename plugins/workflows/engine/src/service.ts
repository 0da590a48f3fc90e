import type { CallContext, Events, HostReport, Log, SlotView, StartSpan } from '@svc/core'
import {
  type Check,
  type DefinedSchedule,
  type JobKind,
  type Jobs,
  type MetricSource,
  type NodeBus,
  type Peers,
  type Run,
  RunAnswered,
  RunAsked,
  RunEnded,
  type RunEvent,
  type RunQueue,
  RunStarted,
  type Store,
  type WorkflowDefinition,
  type WorkflowNode,
  type Workflows,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { openSpace } from '@svc/storage-kit'
import { durationMs } from '@svc/workflow-lang'
import { BULK_KIND, BulkRuns } from './bulk.ts'
import { createChecker, type createNameLookup, withWorkflowNames } from './checker.ts'
import { contractOf } from './contract.ts'
import { createCheck, createRunMetrics, DueRuns, WaitingRuns } from './run-metrics.ts'
import { RUN_KIND } from './definition-schedule.ts'
import { Definitions } from './definitions.ts'
import { type Entry, nodeOf } from './history.ts'
import { WorkflowLibrary } from './library.ts'
import { Loader } from './loader.ts'
import { RunMaintenance } from './maintenance.ts'
import { RunInterfaces } from './run-interface.ts'
import { PAUSED, RunPauses, WorkflowPauses } from './pauses.ts'
import { ProblemLog } from './problem-log.ts'
import { RunListeners, RunReader } from './run-reader.ts'
import type { WorkflowRoots } from './workflow-files.ts'
import { NEWS, RunActions } from './run-actions.ts'
import type { WorkflowsConfig } from './settings.ts'
import { type RunRecord, SPACE } from './space.ts'
import { RunStarter } from './run-starter.ts'
import { RunWorker } from './worker.ts'
import { Versions } from './versions.ts'
import { Workplaces } from './workplaces.ts'
import { createRunKind, ScheduleSync } from './workflow-schedules.ts'
import { WorkflowTexts } from './workflow-texts.ts'

export interface ServiceDependencies {
  readonly store: Store
  readonly queue: RunQueue
  readonly peers: Peers | undefined
  readonly bus: NodeBus | undefined
  /** This process. */
  readonly self: Pick<HostReport, 'worker' | 'nodeId' | 'serverId' | 'clusterId'>
  /** Whether this host takes runs from the queue. A command executes only the run that it started. */
  readonly isServer: boolean
  /** Whether it may: a server without the role `runs` only starts and shows runs. */
  readonly takesRuns: boolean
  readonly types: SlotView<WorkflowNode>
  readonly definitions: SlotView<WorkflowDefinition>
  /** The folder of workflows that are saved without a file. */
  readonly home: string
  readonly lookup: ReturnType<typeof createNameLookup>
  readonly config: WorkflowsConfig
  readonly roots: WorkflowRoots
  readonly events: Events
  readonly jobs: Jobs | undefined
  /** Adds a schedule to its slot. Returns what removes it. */
  readonly addSchedule: (name: string, item: DefinedSchedule) => () => void
  readonly publish: Publish
  readonly log: Log
  readonly span: StartSpan
  readonly lasting: CallContext
}

/** The service and its lifecycle. */
export interface WorkflowService {
  readonly workflows: Workflows
  readonly check: Check
  readonly metrics: MetricSource
  /** The job kinds of bulk changes and of scheduled runs, by name. */
  readonly jobKinds: Readonly<Record<string, JobKind>>
  /** Starts taking runs from the queue, and maintenance. */
  readonly begin: () => undefined
  /** A node has joined or left. */
  readonly onNodes: () => void
  /** Handles a message of another worker. */
  onPeerMessage(topic: string, message: unknown): Promise<void>
  /** Messages of other workers can be lost. */
  onMissed(ctx: CallContext): Promise<void>
  drain(limitMs: number): Promise<void>
}

const SECOND = 1_000

export async function createWorkflows(parts: ServiceDependencies): Promise<WorkflowService> {
  const { store, queue, peers, types, config, publish, log, lasting } = parts
  await openSpace(store, SPACE, {}, lasting)
  const waitingRuns = new WaitingRuns(store)
  const dueRuns = new DueRuns(queue, lasting)
  const report = createReporter(parts, waitingRuns)
  const workplaces = await createWorkplaces(parts)
  const readers = new RunListeners()
  const loader = new Loader({ store, types, secrets: config.secrets })
  const names = withWorkflowNames(parts.lookup, () => library)
  const checker = createChecker({ types, ...names, secrets: Object.keys(config.secrets) })
  const library: WorkflowLibrary = new WorkflowLibrary({ slot: parts.definitions, roots: parts.roots, checker })
  const counts = createRunMetrics({ isNamed: workflow => library.isNamed(workflow), active: () => worker.size })
  const worker: RunWorker = createWorker(parts, {
    loader,
    workplaces,
    counts,
    readers,
    asked: (id, record, entries) => report.asked(id, record, entries),
    ended: (id, record) => report.ended(id, record),
    next: (...how) => starting.next(...how),
  })
  const reading = new RunReader({ store, loader, readers, working: id => worker.recordOf(id) })
  const pauses = new WorkflowPauses({ store, queue, peers })
  const interfaces = new RunInterfaces({ loader, reading })
  const runActions = new RunActions({ store, queue, peers, loader, reading, interfaces, worker, publish })
  const definitions = new Definitions({ library, loader, types })
  const shared = { store, queue, library, loader, reading, worker, pauses, definitions }
  const starting: RunStarter = new RunStarter({ ...shared, started: report.started, log, lasting })
  const bulk = new BulkRuns({ store, jobs: parts.jobs, runActions, starting, publish })
  const runKind = createRunKind({ jobs: parts.jobs, starting, reading, runActions, lasting })
  const scheduleSync = new ScheduleSync({ library, add: parts.addSchedule, log, isWritableByTools: config.writable_by_tools })
  const problemLog = new ProblemLog({ library, peers, log, lasting })
  return {
    check: createCheck(worker, store),
    jobKinds: { [BULK_KIND]: bulk.kind, [RUN_KIND]: runKind },
    metrics: {
      // the health check reports an unavailable store; the local counters stay available
      read: async ctx =>
        counts.families(await waitingRuns.read(ctx).catch(() => undefined), await dueRuns.read().catch(() => undefined)),
    },
    workflows: contractOf({
      library,
      checker,
      starting,
      reading,
      runActions,
      interfaces,
      versions: new Versions({ store, library, types }),
      bulk,
      pauses,
      worker,
      texts: new WorkflowTexts({ ...parts, library, checker }),
      runPauses: new RunPauses({ library, pauses, reading, runActions, publish }),
      syncWaitMs: config.sync_wait_ms,
    }),
    onNodes: () => workplaces.changed(),
    ...lifecycleOf(parts, { worker, pauses }, [createMaintenance(parts, pauses), workplaces, problemLog, scheduleSync]),
  }
}

/** What a server does in the background, beside its runs. */
interface Background {
  begin(): unknown
  end(): void
}

const lifecycleOf = (
  { isServer, takesRuns, log, lasting }: ServiceDependencies,
  { worker, pauses }: { readonly worker: RunWorker; readonly pauses: WorkflowPauses },
  background: readonly Background[]
): Pick<WorkflowService, 'begin' | 'onPeerMessage' | 'onMissed' | 'drain'> => ({
  begin() {
    if (!isServer) return undefined
    pauses.follow(log, lasting)
    if (takesRuns) void worker.take()
    for (const item of background) void item.begin()
    return undefined
  },
  async onPeerMessage(topic, message) {
    if (topic === NEWS) await worker.news((message as { run: string }).run)
    if (topic === PAUSED) pauses.onPeerMessage(message)
  },
  onMissed: ctx => pauses.onMissed(ctx),
  async drain(limitMs) {
    for (const item of background) item.end()
    await worker.drain(limitMs)
  },
})

interface WorkerParts {
  readonly loader: Loader
  readonly workplaces: Workplaces
  readonly counts: ReturnType<typeof createRunMetrics>
  readonly readers: RunListeners
  /** Entries of a run that can contain questions and answers. */
  readonly asked: (id: string, record: RunRecord, entries: readonly Entry[]) => void
  readonly ended: (id: string, record: RunRecord) => void
  readonly next: RunStarter['next']
}

function createWorker(
  parts: ServiceDependencies,
  { loader, workplaces, counts, readers, asked, ended, next }: WorkerParts
): RunWorker {
  const { store, queue, types, config, takesRuns, log, span, lasting } = parts
  return new RunWorker({
    store,
    queue,
    loader,
    types,
    workplaces,
    limits: limitsOf(config),
    atOnce: takesRuns ? config.at_once : 0,
    stored(id, record, entries, history) {
      counts.stored(entries, history)
      readers.notify(id)
      asked(id, record, entries)
    },
    progress: (id, step, node, { message, fraction }) => readers.notify(id, progressEvent(step, node, message, fraction)),
    ended(id, record) {
      counts.ended(record)
      readers.notify(id, undefined, record)
      ended(id, record)
    },
    next,
    log,
    span,
    lasting,
  })
}

/** Only machines that share a store have different files. */
async function createWorkplaces(parts: ServiceDependencies): Promise<Workplaces> {
  const { store, queue, bus, self, isServer, config, log, lasting } = parts
  const { nodeId: node, worker, clusterId, serverId } = self
  const isCluster = (await store.probe(lasting)).scope === 'cluster'
  const [isShared, waitMs] = [!isCluster || config.shared_workplace, durationMs(config.workplace_wait)!]
  const isMember = isCluster && isServer && clusterId !== serverId
  return new Workplaces({ store, queue, bus: isMember ? bus : undefined, node, worker, isShared, waitMs, log, lasting })
}

function createMaintenance(parts: ServiceDependencies, pauses: WorkflowPauses): RunMaintenance {
  const { store, queue, config, log, lasting } = parts
  const { worker } = parts.self
  const [retentionMs, maxAgeMs] = [durationMs(config.retention)!, durationMs(config.max_age)!]
  return new RunMaintenance({ store, queue, pauses, worker, retentionMs, maxAgeMs, log, lasting })
}

/** Publishes the runs of this worker. The principal of the end is the owner of the run. */
const createReporter = (
  { events, lasting }: Pick<ServiceDependencies, 'events' | 'lasting'>,
  waitingRuns: Pick<WaitingRuns, 'changed'>
) => ({
  started: ({ id: run, workflow }: Run, ctx: CallContext) => void events.publish(RunStarted, { run, workflow }, ctx),
  asked(run: string, record: RunRecord, entries: readonly Entry[]) {
    waitingRuns.changed()
    const ctx = { ...lasting, principal: { id: record.owner, scopes: [] } }
    for (const entry of entries) {
      const topic = topicOf(entry)
      if (topic && 's' in entry)
        void events.publish(topic, { run, workflow: record.workflow, step: entry.s, node: nodeOf(entry.s) }, ctx)
    }
  },
  ended(id: string, record: RunRecord) {
    waitingRuns.changed()
    const principal = { id: record.owner, scopes: [] }
    void events.publish(RunEnded, endedOf(id, record), { ...lasting, principal })
  },
})

function topicOf(entry: Entry): typeof RunAsked | undefined {
  if (entry.t === 'asleep' && entry.ask) return RunAsked
  return entry.t === 'woken' && entry.by === 'answer' ? RunAnswered : undefined
}

const endedOf = (run: string, { workflow, status, error, createdAt, updatedAt }: RunRecord) => ({
  run,
  workflow,
  status,
  error_code: error?.code ?? null,
  duration: (updatedAt - createdAt) / SECOND,
})

const limitsOf = (config: WorkflowsConfig) => ({
  nodeTimeoutMs: durationMs(config.node_timeout)!,
  maxSteps: config.max_steps,
  maxOutputBytes: config.max_output_bytes,
  maxRunBytes: config.max_run_bytes,
  runTimeoutMs: config.run_timeout_s * SECOND,
  maxAgeMs: durationMs(config.max_age)!,
})

/** Progress events go only to current listeners, not to the log. */
const progressEvent = (step: string, node: string, message: string | undefined, fraction: number | undefined): RunEvent => ({
  at: Date.now(),
  type: 'node_progress',
  step,
  node,
  data: { message, fraction },
})
