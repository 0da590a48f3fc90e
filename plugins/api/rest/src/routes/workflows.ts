import type { Json, Route, Workflows } from '@svc/core/contracts'
import { infoRecord, runReply } from '@svc/api-types'
import { keyOf, RUN_REPLY, waitOf, WORKFLOW_INFO } from '../run-schemas.ts'
import { list, OBJECT, object, ok, text } from '../schemas.ts'

const PATH = '/api/v1/workflows'

const described = (schema: unknown, description: string) => ({ ...(schema as object), description })
const runBody = object(
  {
    workflow: { ...(text('Its name, or the path of a file below a workflow root.') as object), maxLength: 1_000 },
    input: described(OBJECT, 'Fits the schema of its inputs; default {}.'),
    parameters: described(OBJECT, 'Over the defaults of its parameters; default {}.'),
  },
  ['workflow']
)
const named = object({ workflow: text('Its name, or the path of a file below a workflow root.') })

interface RunBody {
  readonly workflow: string
  readonly input?: Json
  readonly parameters?: Json
}

/** Workflows, and how a run of one begins. */
export function createWorkflowRoutes(workflows: Workflows): Record<string, Route> {
  return { workflows: listRoute(workflows), workflow_definition: showRoute(workflows), workflow_run: runRoute(workflows) }
}

const listRoute = (workflows: Workflows): Route => ({
  method: 'GET',
  path: PATH,
  summary: 'List workflows',
  scope: 'workflows',
  responses: ok('The workflows; one with problems cannot run.', object({ workflows: list(WORKFLOW_INFO) })),
  handle: async (_request, ctx) => ({ body: { workflows: (await workflows.list(ctx)).map(infoRecord) } }),
})

const showRoute = (workflows: Workflows): Route => ({
  method: 'GET',
  path: `${PATH}/definition`,
  summary: 'Read the definition of a workflow',
  scope: 'workflows',
  query: named,
  responses: ok('It, as it is now; a run keeps the one it began with.', object({ workflow: WORKFLOW_INFO, definition: OBJECT })),
  async handle({ query: { workflow = '' } }, ctx) {
    const { info, definition } = await workflows.show(workflow, ctx)
    return { body: { workflow: infoRecord(info), definition } }
  },
})

const runRoute = (workflows: Workflows): Route => ({
  method: 'POST',
  path: `${PATH}/run`,
  summary: 'Run a workflow; waits for its end for workflows.sync_wait_ms, or as the header Prefer says',
  scope: 'workflows',
  body: runBody,
  responses: ok('Its result, or that it goes on in the background, or why it failed.', RUN_REPLY),
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
    return { body: runReply(await workflows.settled(run.id, waitOf(headers), ctx)) }
  },
})
