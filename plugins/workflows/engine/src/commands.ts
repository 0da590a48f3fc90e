import { WorkflowsAnswer } from './commands/answer.ts'
import { WorkflowsCancel } from './commands/cancel.ts'
import { WorkflowsGraph } from './commands/graph.ts'
import { WorkflowsList } from './commands/list.ts'
import { WorkflowsRetry } from './commands/retry.ts'
import { WorkflowsRun } from './commands/run.ts'
import { WorkflowsRuns } from './commands/runs.ts'
import { WorkflowsShow } from './commands/show.ts'
import { WorkflowsStatus } from './commands/status.ts'
import { WorkflowsValidate } from './commands/validate.ts'

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
}
