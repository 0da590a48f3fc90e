import type { CallContext, Events, Log, SlotView, StartSpan } from '@svc/core'
import {
  type Check,
  type DefinedSchedule,
  type JobKind,
  type Jobs,
  type MetricSource,
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
  type WorkflowInfo,
  type WorkflowNode,
  type Workflows,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { openSpace } from '@svc/storage-kit'
import { durationMs } from '@svc/workflow-lang'
import { BulkRuns } from './bulk.ts'
import { type Checker, createChecker, type createNameLookup, withWorkflowNames } from './checker.ts'
import { createRunMetrics } from './run-metrics.ts'
import { Definitions } from './definitions.ts'
import { type Entry, nodeOf } from './history.ts'
import { infoOf, WorkflowLibrary } from './library.ts'
import { Loader } from './loader.ts'
import { RunMaintenance } from './maintenance.ts'
import { RunInterfaces } from './run-interface.ts'
import { RunPauses, WorkflowPauses } from './pauses.ts'
import { ProblemLog } from './problem-log.ts'
import { RunListeners, RunReader } from './run-reader.ts'
import type { WorkflowRoots } from './workflow-files.ts'
import { NEWS, RunActions } from './run-actions.ts'
import type { WorkflowsConfig } from './settings.ts'
import { type RunRecord, RUNS, SPACE } from './space.ts'
import { RunStarter } from './run-starter.ts'
import { RunWorker } from './worker.ts'
import { Versions } from './versions.ts'
import { createRunKind, ScheduleSync } from './workflow-schedules.ts'
import { WorkflowTexts } from './workflow-texts.ts'

export interface ServiceDependencies {
  readonly store: Store
  readonly queue: RunQueue
  readonly peers: Peers | undefined
  /** The name of this worker. */
  readonly worker: string
  /** Whether this host takes runs from the queue. A command executes only the run that it started. */
  readonly isServer: boolean
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
  /** The job kind of bulk changes. */
  readonly bulkKind: JobKind
  /** The job kind that starts a run. */
  readonly runKind: JobKind
  /** Starts taking runs from the queue, and maintenance. */
  readonly begin: () => undefined
  /** Handles a message of another worker. */
  onPeerMessage(topic: string, message: unknown): Promise<void>
  drain(limitMs: number): Promise<void>
}

const SECOND = 1_000

export async function createWorkflows(parts: ServiceDependencies): Promise<WorkflowService> {
  const { store, queue, peers, isServer, types, config, publish, log, lasting } = parts
  await openSpace(store, SPACE, {}, lasting)
  const report = createReporter(parts)
  const readers = new RunListeners()
  const loader = new Loader({ store, types, secrets: config.secrets })
  const names = withWorkflowNames(parts.lookup, () => library)
  const checker = createChecker({ types, ...names, secrets: Object.keys(config.secrets) })
  const library: WorkflowLibrary = new WorkflowLibrary({ slot: parts.definitions, roots: parts.roots, checker })
  const counts = createRunMetrics({ isNamed: workflow => library.isNamed(workflow), active: () => worker.size })
  const worker: RunWorker = createWorker(parts, {
    loader,
    counts,
    readers,
    asked: (id, entries) => report.asked(id, entries, worker.recordOf(id)),
    ended: (id, record) => report.ended(id, record),
    next: (...how) => starting.next(...how),
  })
  const reading = new RunReader({ store, loader, readers, working: id => worker.recordOf(id) })
  const pauses = new WorkflowPauses({ store, queue })
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
    bulkKind: bulk.kind,
    runKind,
    metrics: {
      // the health check reports an unavailable store; the local counters stay available
      read: async ctx => counts.families((await openRuns(store, ctx).catch(() => undefined))?.waiting),
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
    ...lifecycleOf(isServer, worker, [createMaintenance(parts, pauses), problemLog, scheduleSync]),
  }
}

/** What a server does in the background, beside its runs. */
interface Background {
  begin(): unknown
  end(): void
}

const lifecycleOf = (
  isServer: boolean,
  worker: RunWorker,
  background: readonly Background[]
): Pick<WorkflowService, 'begin' | 'onPeerMessage' | 'drain'> => ({
  begin() {
    if (!isServer) return undefined
    void worker.take()
    for (const item of background) void item.begin()
    return undefined
  },
  async onPeerMessage(topic, message) {
    if (topic === NEWS) await worker.news((message as { run: string }).run)
  },
  async drain(limitMs) {
    for (const item of background) item.end()
    await worker.drain(limitMs)
  },
})

interface WorkerParts {
  readonly loader: Loader
  readonly counts: ReturnType<typeof createRunMetrics>
  readonly readers: RunListeners
  /** Entries of a run that can contain questions and answers. */
  readonly asked: (id: string, entries: readonly Entry[]) => void
  readonly ended: (id: string, record: RunRecord) => void
  readonly next: RunStarter['next']
}

function createWorker(parts: ServiceDependencies, { loader, counts, readers, asked, ended, next }: WorkerParts): RunWorker {
  const { store, queue, types, config, log, span, lasting } = parts
  return new RunWorker({
    store,
    queue,
    loader,
    types,
    limits: limitsOf(config),
    atOnce: config.at_once,
    stored(id, entries, history) {
      counts.stored(entries, history)
      readers.notify(id)
      asked(id, entries)
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

function createMaintenance(parts: ServiceDependencies, pauses: WorkflowPauses): RunMaintenance {
  const { store, queue, worker, config, log, lasting } = parts
  const [retentionMs, maxAgeMs] = [durationMs(config.retention)!, durationMs(config.max_age)!]
  return new RunMaintenance({ store, queue, pauses, worker, retentionMs, maxAgeMs, log, lasting })
}

interface Components {
  readonly library: WorkflowLibrary
  readonly checker: Checker
  readonly texts: WorkflowTexts
  readonly starting: RunStarter
  readonly reading: RunReader
  readonly runActions: RunActions
  readonly interfaces: RunInterfaces
  readonly versions: Versions
  readonly bulk: BulkRuns
  readonly pauses: WorkflowPauses
  readonly runPauses: RunPauses
  readonly worker: RunWorker
  readonly syncWaitMs: number
}

/** The public service: each method delegates to a component. */
const contractOf = ({
  library,
  checker,
  texts,
  starting,
  reading,
  runActions,
  bulk,
  worker,
  ...more
}: Components): Workflows => ({
  async list(ctx) {
    const [all, paused] = await Promise.all([library.all(), more.pauses.all(ctx)])
    return all.map(known => withPause(infoOf(known), paused.get(known.name)))
  },
  async show(workflow, ctx) {
    const known = await library.find(workflow)
    return { info: withPause(infoOf(known), await more.pauses.get(known.name, ctx)), definition: known.definition }
  },
  versions: (workflow, ctx) => more.versions.of(workflow, ctx),
  async validate({ text, file }) {
    await library.look()
    return checker.text(text, file ?? 'workflow').problems
  },
  source: workflow => texts.source(workflow),
  save: change => texts.save(change),
  questions: (query, ctx) => reading.questions(query, ctx),
  start: (request, ctx) => starting.start(request, ctx),
  settled: (id, waitMs = more.syncWaitMs, ctx) => reading.settled(id, waitMs, ctx),
  get: (id, ctx) => reading.get(id, ctx),
  runs: (query, ctx) => reading.runs(query, ctx),
  steps: (id, ctx) => reading.steps(id, ctx),
  stepsAt: (id, ctx) => reading.stepsAt(id, ctx),
  definitionOf: (id, ctx) => reading.definitionOf(id, ctx),
  events: (id, after, ctx) => reading.events(id, after, ctx),
  signal: (id, event, ctx) => runActions.signal(id, event, ctx),
  interface: (id, ctx) => more.interfaces.of(id, ctx),
  query: (id, name, ctx) => more.interfaces.query(id, name, ctx),
  answer: (id, answer, ctx) => runActions.answer(id, answer, ctx),
  cancel: (id, ctx) => runActions.cancel(id, ctx),
  retry: (id, how, ctx) => starting.retry(id, how, ctx),
  replay: (id, request, ctx) => starting.replay(id, request, ctx),
  drop: (id, ctx) => runActions.drop(id, ctx),
  pause: (id, ctx) => more.runPauses.pause(id, ctx),
  resume: (id, ctx) => more.runPauses.resume(id, ctx),
  pauseWorkflow: (workflow, ctx) => more.runPauses.pauseWorkflow(workflow, ctx),
  resumeWorkflow: (workflow, ctx) => more.runPauses.resumeWorkflow(workflow, ctx),
  bulk: (request, ctx) => bulk.bulk(request, ctx),
  async work(id, ctx) {
    await reading.record(id, ctx)
    await worker.only(id, ctx)
  },
})

const withPause = (info: WorkflowInfo, pausedAt: number | undefined): WorkflowInfo =>
  pausedAt === undefined ? info : { ...info, pausedAt }

/** Publishes the runs of this worker. The principal of the end is the owner of the run. */
const createReporter = ({ events, lasting }: Pick<ServiceDependencies, 'events' | 'lasting'>) => ({
  started: ({ id: run, workflow }: Run, ctx: CallContext) => void events.publish(RunStarted, { run, workflow }, ctx),
  asked(run: string, entries: readonly Entry[], record: RunRecord | undefined) {
    if (!record) return
    const ctx = { ...lasting, principal: { id: record.owner, scopes: [] } }
    for (const entry of entries) {
      const topic = topicOf(entry)
      if (topic && 's' in entry)
        void events.publish(topic, { run, workflow: record.workflow, step: entry.s, node: nodeOf(entry.s) }, ctx)
    }
  },
  ended(id: string, record: RunRecord) {
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

/** Reports whether this worker takes runs from the queue, and how many runs are open. */
function createCheck(worker: Pick<RunWorker, 'problem' | 'size'>, store: Store): Check {
  const probe: Check['probe'] = async () =>
    worker.problem === undefined
      ? { status: 'healthy' }
      : { status: 'degraded', reason: `cannot take runs from the queue: ${worker.problem}` }
  return {
    probe,
    async status(ctx) {
      const { open, waiting, andMore } = await openRuns(store, ctx)
      const detail = { runs_here: worker.size, runs_open: open, runs_waiting: waiting, ...(andMore ? { and_more: true } : {}) }
      return { ...(await probe(ctx)), detail }
    },
  }
}

/** Open runs of all workers. */
interface OpenRuns {
  readonly open: number
  /** Runs among them that slept at their last write: for a person, an event or a time. */
  readonly waiting: number
  /** Whether there are more runs than were read. */
  readonly andMore: boolean
}

/** Maximum number of runs to read, because metrics are read often. */
const LOOKED = 1_000

async function openRuns(store: Store, ctx: CallContext): Promise<OpenRuns> {
  const { records, next } = await store.range(RUNS, { index: 'by_status', equals: ['running'], limit: LOOKED }, ctx)
  const waiting = records.filter(({ value }) => (value as unknown as RunRecord).waiting.length > 0).length
  return { open: records.length, waiting, andMore: next !== undefined }
}
