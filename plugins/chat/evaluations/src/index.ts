import { definePlugin } from '@svc/core'
import { Chat, Conversations, Evaluations, JobKinds, Jobs, ModelCalls, Prices, Routes, Selection } from '@svc/core/contracts'
import { createRoutes } from './routes.ts'
import { createEvaluationKind, createEvaluations, KIND } from './service.ts'
import { ToolRecords } from './tool-records.ts'

/** Before taps that allow or deny calls: a recorded call never runs. */
const FIRST = -1_000_000

/** Evaluates replies of models: cases with checks, and stored turns that run again. */
export default definePlugin({
  requires: { chat: Chat, conversations: Conversations, modelCalls: ModelCalls, selection: Selection },
  optional: { prices: Prices, jobs: Jobs },
  provides: Evaluations,
  setup(scope, { chat, conversations, modelCalls, selection, prices, jobs }) {
    const records = new ToolRecords(verdict => scope.tap(Chat.hooks.toolCall, verdict, { stage: FIRST }))
    const services = { chat, conversations, modelCalls, selection, prices, records, log: scope.log }
    const evaluations = createEvaluations(services, jobs)
    if (jobs) scope.add(JobKinds, KIND, createEvaluationKind(services))
    for (const [name, route] of Object.entries(createRoutes(evaluations))) scope.add(Routes, name, route)
    return evaluations
  },
})
