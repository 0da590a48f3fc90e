import type { Json, Route, Workflows } from '@svc/core/contracts'
import { infoRecord, list, OBJECT, object, ok, text, versionRecord } from '@svc/api-types'
import { replyBody } from '../run-files.ts'
import { keyOf, RUN_REPLY, settledRun, WORKFLOW_INFO, WORKFLOW_VERSION } from '../run-schemas.ts'

const PATH = '/api/v1/workflows'

const described = (schema: unknown, description: string) => ({ ...(schema as object), description })
const runBody = object(
  {
    workflow: { ...(text('Name of the workflow, or path of a file below a workflow root.') as object), maxLength: 1_000 },
    input: described(OBJECT, 'Input that matches the input schema of the workflow. Default: {}.'),
    parameters: described(OBJECT, 'Parameters that override the defaults of the workflow. Default: {}.'),
  },
  ['workflow']
)
const named = object({ workflow: text('Name of the workflow, or path of a file below a workflow root.') })

interface RunBody {
  readonly workflow: string
  readonly input?: Json
  readonly parameters?: Json
}

/** Routes that list, show and start workflows. */
export function createWorkflowRoutes(workflows: Workflows): Record<string, Route> {
  return {
    workflows: listRoute(workflows),
    workflow_definition: showRoute(workflows),
    workflow_versions: versionsRoute(workflows),
    workflow_run: runRoute(workflows),
  }
}

const listRoute = (workflows: Workflows): Route => ({
  method: 'GET',
  path: PATH,
  summary: 'List workflows',
  scope: 'workflows',
  responses: ok('The workflows. A workflow with problems cannot run.', object({ workflows: list(WORKFLOW_INFO) })),
  handle: async (_request, ctx) => ({ body: { workflows: (await workflows.list(ctx)).map(infoRecord) } }),
})

const showRoute = (workflows: Workflows): Route => ({
  method: 'GET',
  path: `${PATH}/definition`,
  summary: 'Read the definition of a workflow',
  scope: 'workflows',
  query: named,
  responses: ok(
    'The current definition. A run keeps the definition that it started with.',
    object({ workflow: WORKFLOW_INFO, definition: OBJECT })
  ),
  async handle({ query: { workflow = '' } }, ctx) {
    const { info, definition } = await workflows.show(workflow, ctx)
    return { body: { workflow: infoRecord(info), definition } }
  },
})

const versionsRoute = (workflows: Workflows): Route => ({
  method: 'GET',
  path: `${PATH}/versions`,
  summary: 'List the versions of a workflow with their open runs',
  scope: 'workflows',
  query: named,
  responses: ok('The versions: the current one, then the last used.', object({ versions: list(WORKFLOW_VERSION) })),
  handle: async ({ query: { workflow = '' } }, ctx) => ({
    body: { versions: (await workflows.versions(workflow, ctx)).map(versionRecord) },
  }),
})

const runRoute = (workflows: Workflows): Route => ({
  method: 'POST',
  path: `${PATH}/run`,
  summary: 'Run a workflow; wait for its end up to workflows.sync_wait_ms or the time in the header Prefer',
  scope: 'workflows',
  body: runBody,
  responses: ok('The result, the state of a run that continues in the background, or the failure.', RUN_REPLY),
  async handle({ body, headers }, ctx) {
    const { workflow, input, parameters } = body as unknown as RunBody
    const key = keyOf(headers)
    const run = await workflows.start(
      {
        workflow,
        ...(input === undefined ? {} : { input }),
        ...(parameters === undefined ? {} : { parameters }),
        ...(key === undefined ? {} : { idempotencyKey: key }),
      },
      ctx
    )
    return { body: replyBody(await settledRun(workflows, run, headers, ctx)) }
  },
})
