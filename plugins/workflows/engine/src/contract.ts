import type { WorkflowInfo, Workflows } from '@svc/core/contracts'
import type { BulkRuns } from './bulk.ts'
import type { Checker } from './checker.ts'
import { infoOf, type WorkflowLibrary } from './library.ts'
import type { RunPauses, WorkflowPauses } from './pauses.ts'
import type { RunActions } from './run-actions.ts'
import type { RunInterfaces } from './run-interface.ts'
import type { RunReader } from './run-reader.ts'
import type { RunStarter } from './run-starter.ts'
import type { Versions } from './versions.ts'
import type { RunWorker } from './worker.ts'
import type { WorkflowTexts } from './workflow-texts.ts'

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
export const contractOf = ({
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
