import {
  WorkflowsAnswer,
  WorkflowsCancel,
  WorkflowsReplay,
  WorkflowsRetry,
  WorkflowsRun,
  WorkflowsRuns,
  WorkflowsStatus,
} from './commands/runs.ts'
import { WorkflowsBulk, WorkflowsDeadLetters, WorkflowsDrop } from './commands/dead-letters.ts'
import { WorkflowsGraph, WorkflowsList, WorkflowsShow, WorkflowsValidate, WorkflowsVersions } from './commands/definitions.ts'
import { WorkflowsPause, WorkflowsQuery, WorkflowsResume, WorkflowsSignal } from './commands/run-control.ts'

export const COMMANDS = {
  'workflows:list': WorkflowsList,
  'workflows:show': WorkflowsShow,
  'workflows:validate': WorkflowsValidate,
  'workflows:graph': WorkflowsGraph,
  'workflows:run': WorkflowsRun,
  'workflows:runs': WorkflowsRuns,
  'workflows:status': WorkflowsStatus,
  'workflows:cancel': WorkflowsCancel,
  'workflows:answer': WorkflowsAnswer,
  'workflows:retry': WorkflowsRetry,
  'workflows:replay': WorkflowsReplay,
  'workflows:dead-letters': WorkflowsDeadLetters,
  'workflows:drop': WorkflowsDrop,
  'workflows:bulk': WorkflowsBulk,
  'workflows:pause': WorkflowsPause,
  'workflows:resume': WorkflowsResume,
  'workflows:signal': WorkflowsSignal,
  'workflows:query': WorkflowsQuery,
  'workflows:versions': WorkflowsVersions,
}
