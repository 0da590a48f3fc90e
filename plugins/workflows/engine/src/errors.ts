import { codeOf, messageOf, svcError } from '@svc/core'
import type { PublicError, RunStatus, WorkflowProblem } from '@svc/core/contracts'

/** `renamed`: a file whose definition has this name, but which has another name itself. */
export const workflowUnknown = (name: string, known: readonly string[], renamed?: string) =>
  svcError('WORKFLOW_UNKNOWN', `workflow "${name.slice(0, 200)}" does not exist`, {
    details: { field: 'workflow', value: name.slice(0, 200), reason: 'not found' },
    hint:
      renamed !== undefined
        ? `The definition in ${renamed.slice(0, 200)} has this name, but a workflow must have the name of its file: rename one of them`
        : known.length > 0
          ? `Use one of: ${known.slice(0, 30).join(', ')}`
          : 'Add a workflow file to a folder of workflows.roots',
  })

export const serverSilent = (url: string) =>
  svcError('SERVER_SILENT', `the server at ${url} did not answer`, {
    hint: 'Try again; `svc status` shows whether the server runs',
  })

export const pathRefused = (path: string) =>
  svcError('INVALID_VALUE', `"${path.slice(0, 200)}" is not a workflow file in a folder of workflows.roots`, {
    details: { field: 'workflow', value: path.slice(0, 200), reason: 'not a workflow file in a folder of workflows.roots' },
    hint: 'Use a name from `svc workflows list`, or the path of a file in such a folder',
  })

export const workflowInvalid = (name: string, problems: readonly WorkflowProblem[]) =>
  svcError('WORKFLOW_INVALID', `workflow "${name}" is invalid: ${problems.slice(0, 3).map(lineOf).join('; ')}`, {
    details: { field: 'workflow', value: name, reason: 'invalid', problems },
    hint: `Run \`svc workflows validate ${name}\` to see all problems`,
  })

const lineOf = ({ message, path, line }: WorkflowProblem) =>
  `${path}${path ? ' ' : ''}${message}${line === undefined ? '' : ` (line ${line})`}`

/** Errors of a store that a retry does not change: it rejects the content. */
export const REFUSED: ReadonlySet<string | undefined> = new Set(['STORE_TOO_LARGE', 'STORE_INVALID'])

export const runUnknown = (id: string) =>
  svcError('RUN_UNKNOWN', `run "${id.slice(0, 100)}" does not exist`, {
    details: { field: 'workflow_id', value: id.slice(0, 100), reason: 'not found' },
    hint: 'Run `svc workflows runs` to list the runs. Ended runs are deleted after workflows.retention',
  })

export const invalid = (field: string, reason: string, more: Readonly<Record<string, unknown>> = {}) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason, ...more } })

/** A file that callers of the service must not write. */
export const fileRefused = (name: string, reason: string) =>
  svcError('FORBIDDEN', `workflow "${name}" cannot be saved: ${reason}`, {
    details: { field: 'workflow', value: name, reason },
    hint: 'Change the file on the machine of the server, or use another name',
  })

export const versionStale = (name: string) =>
  svcError('PRECONDITION_FAILED', `workflow "${name}" has another version now`, {
    details: { field: 'workflow', value: name },
    hint: 'Read its source again, and repeat the change',
  })

export const filesBusy = (cause: unknown) =>
  svcError('UNAVAILABLE', 'another change of a workflow takes too long; save again later', {
    cause,
    hint: 'Save again. If it fails again, check which program holds the lock of the workflow folder',
  })

/** A run does not take the notices of its inbox while it is paused. */
export function inboxFull(id: string, most: string) {
  const hint = 'Resume the run if it is paused, let it take its events, then send this one again'
  const details = { field: 'name', value: id, reason: 'the inbox of the run is full', hint }
  return svcError('RUN_INBOX_FULL', `the run cannot take another event: ${most} already wait in its inbox`, { details, hint })
}

/** The same with the list of allowed values. */
export const notAllowed = (
  field: string,
  reason: string,
  allowed: readonly string[],
  more: Readonly<Record<string, unknown>> = {}
) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, {
    details: { field, reason, ...more, allowed },
    ...(allowed.length > 0 ? { hint: `Use one of: ${allowed.slice(0, 30).join(', ')}` } : {}),
  })

export const pauseForbidden = () =>
  svcError('FORBIDDEN', 'pausing a workflow needs the scope admin', { hint: 'Use a credential with the scope admin' })

export const jobsUnavailable = () =>
  svcError('UNAVAILABLE', 'background jobs are off', { hint: 'Load the plugin jobs, or select fewer runs' })

export const asksNothing = (id: string, status: RunStatus) => {
  const reason = status === 'running' ? 'has no open question: it is running' : `has no open question: its status is ${status}`
  return svcError('INVALID_VALUE', `the run ${reason}`, {
    details: { field: 'workflow_id', value: id, reason },
    hint: `Run \`svc workflows status ${id}\` to see its state`,
  })
}

export const secretMissing = (workflow: string, names: readonly string[]) =>
  svcError('INVALID_VALUE', `workflow "${workflow}" uses secrets without a value: ${names.join(', ')}`, {
    details: { field: 'workflow', value: workflow, reason: `secrets not configured: ${names.join(', ')}` },
    hint: `Set workflows.secrets.${names[0]} to { env: <variable> }, and set the variable`,
  })

export const engineBroke = (what: string) =>
  svcError('ENGINE_BROKE', `the workflow engine failed: ${what}`, { hint: 'Report this problem to the authors of svc' })

export const definitionGone = () =>
  svcError('DEFINITION_GONE', 'the store does not contain the definition of the run', { hint: 'Start the workflow again' })

export const tooManyVisits = (node: string, limit: number) =>
  svcError('TOO_MANY_VISITS', `the node "${node}" was visited more than ${limit} times`, {
    hint: 'End the cycle with a branch, or increase max_visits of the node',
  })

export const tooManySteps = (limit: number) =>
  svcError('TOO_MANY_STEPS', `the run has reached its limit of ${limit} steps`, {
    hint: 'Increase workflows.max_steps, or split the work into several runs',
  })

export const branchMissing = (node: string, branch: string | undefined, known: readonly string[]) =>
  svcError(
    'BRANCH_MISSING',
    `the node "${node}" returned ${branch === undefined ? 'no branch' : `the unknown branch "${branch}"`}`,
    {
      details: { branch: branch ?? null, known },
      hint: `Add the branch to "branches" of the node, or set "next" of the node`,
    }
  )

export const nodeTypeMissing = (node: string, type: string) =>
  svcError('NODE_TYPE_UNKNOWN', `the node "${node}" has the type "${type}", which no loaded plugin provides`, {
    hint: 'Add the plugin with this node type to "plugins". A run keeps the version of its workflow: to use the current one, replay the run with it',
  })

export const nodeBroke = (node: string, what: string) =>
  svcError('NODE_BROKE', `the node "${node}" violates the contract of nodes: ${what}`, {
    hint: 'Report this problem to the author of its plugin',
  })

export const interrupted = (node: string) =>
  svcError(
    'NODE_INTERRUPTED',
    `the process exited while it ran the node "${node}", so it is unknown whether the node completed its work`,
    {
      hint: 'Check whether the work was done, and retry the run. Set "repeatable: true" on a node that can run twice',
    }
  )

export const nodeLate = (node: string, ms: number) =>
  svcError('NODE_TIMEOUT', `the node "${node}" did not end within ${ms} ms`, { hint: 'Set a longer "timeout" for the node' })

export const runLate = (ms: number) =>
  svcError('RUN_TIMEOUT', `the run has exceeded its limit of ${ms} ms`, {
    hint: 'Increase "timeout" of the workflow, or workflows.run_timeout_s',
  })

/** The error for a run that is older than the limit, else undefined. */
export const tooOld = ({ createdAt }: { readonly createdAt: number }, maxAgeMs: number) =>
  createdAt + maxAgeMs <= Date.now()
    ? svcError('RUN_EXPIRED', `the run is older than ${maxAgeMs / 1000} s and still waits`, {
        hint: 'Increase workflows.max_age',
      })
    : undefined

export const resultTooLarge = (node: string, limit: number) =>
  svcError('RESULT_TOO_LARGE', `the node "${node}" returned more than ${limit} bytes`, {
    details: { limit },
    hint: 'Return only the necessary data, write the rest to a file, or increase workflows.max_output_bytes',
  })

export const runTooLarge = (limit: number) =>
  svcError('RUN_TOO_LARGE', `the steps of the run have returned more than ${limit} bytes`, {
    hint: 'Return less data from each step, or increase workflows.max_run_bytes',
  })

/** `step`: the first one that used the files. */
export function workplaceLost(node: string, step: string) {
  const hint = `Replay the run from "${step}", or start the workflow again. If all nodes have the same files, set workflows.shared_workplace to true`
  return svcError(
    'WORKPLACE_LOST',
    'the node with the files that the run used is gone; replay the run from the step that used them first',
    {
      details: { node, step, hint },
      hint,
    }
  )
}

export const cancelled = () => svcError('CANCELLED', 'cancelled')

/** Codes of errors that a retry does not change. */
export const HOPELESS: ReadonlySet<string> = new Set([
  'INVALID_VALUE',
  'MISSING_FIELD',
  'EXPRESSION_INVALID',
  'EXPRESSION_FAILED',
  'NODE_TYPE_UNKNOWN',
  'TOOL_UNKNOWN',
  'TOOL_DENIED',
  'NOT_APPROVED',
  'HTTP_REFUSED',
  'SERVICE_MISSING',
  'NODE_BROKE',
  'NODE_INTERRUPTED',
  'BUDGET_EXHAUSTED',
  'PRICE_UNKNOWN',
  'RESULT_TOO_LARGE',
  'RUN_TOO_LARGE',
  'TOO_MANY_VISITS',
  'TOO_MANY_STEPS',
  'BRANCH_MISSING',
  'CANCELLED',
  'RUN_TIMEOUT',
  'RUN_EXPIRED',
  'WORKPLACE_LOST',
])

/** An error as runs report it, without stack and cause. */
export function toPublicError(error: unknown): PublicError {
  const { details } = Object(error) as { details?: unknown }
  const facts = typeof details === 'object' && details !== null ? (details as Readonly<Record<string, unknown>>) : {}
  return { code: codeOf(error) ?? 'NODE_FAILED', message: messageOf(error), details: facts }
}

export const continueWithin = (node: string) =>
  svcError(
    'INVALID_VALUE',
    `node "${node}" cannot continue the run as new: it is in a subworkflow or in the body of another node`,
    {
      details: { field: 'type', reason: 'is in a subworkflow or a body', node },
      hint: 'Use continue_as_new in the outermost graph of a workflow, and start that workflow directly',
    }
  )
