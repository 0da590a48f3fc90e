import { BOOLEAN, INTEGER, list, NUMBER, nullable, OBJECT, object, ok, STRING, TIME, words } from '@svc/api-types'
import { type JsonSchema, svcError } from '@svc/core'
import type { Json, PluginChange, PluginSet, Route } from '@svc/core/contracts'
import { definedOf, type Publish } from '@svc/plugin-kit'
import { JOB, jobRecord } from './jobs.ts'

const PATH = '/api/v1/plugins'
const STATES = ['running', 'restarting', 'quarantined', 'failed', 'disabled', 'idle'] as const
const ACTIONS = [
  'install',
  'update',
  'rollback',
  'uninstall',
  'enable',
  'disable',
] as const satisfies readonly PluginChange['action'][]

const described = (schema: JsonSchema, description: string): JsonSchema => ({ ...(schema as object), description })
const titled = (title: string, schema: JsonSchema): JsonSchema => ({ ...(schema as object), title })
const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values })
const NAMES_BY_KIND = mapOf(list(STRING))
const STATE = described(
  words(...STATES),
  'The worst state of all workers. `idle`: installed, but the configuration does not use it.'
)
const REFUSALS = described(mapOf(INTEGER), 'Accesses that the isolated plugin was refused, by kind.')
const PROCESSES = described(
  object({ memory_bytes: INTEGER, cpu_ms: INTEGER, restarts: INTEGER }),
  'The processes of an isolated plugin, of all workers.'
)

const summaryFields = {
  name: STRING,
  version: STRING,
  kind: STRING,
  state: STATE,
  isolation: described(STRING, 'Where its code runs: `in-process`, `process`, or the runtime of its manifest.'),
  origin: object({ kind: words('svc', 'configuration', 'registry', 'folder', 'tarball', 'link'), spec: STRING }, ['kind']),
  optional: BOOLEAN,
  accounting: described(
    object({ calls: INTEGER, errors: INTEGER, ms: NUMBER }),
    'Calls of its hooks and contributions, summed over all workers, also those that have ended. `ms` is without streams.'
  ),
  refusals: REFUSALS,
  process: PROCESSES,
  error: object({ code: STRING, message: STRING }),
}
const SUMMARY_REQUIRED = Object.keys(summaryFields).filter(name => !['error', 'process'].includes(name))
const SUMMARY = titled('Plugin', object(summaryFields, SUMMARY_REQUIRED))

const detailFields = {
  ...summaryFields,
  instances: list(object({ name: STRING, state: STATE, refusals: REFUSALS, process: PROCESSES }, ['name', 'state', 'refusals'])),
  added: described(NAMES_BY_KIND, 'What it has added, by slot.'),
  provides: list(STRING),
  requires: list(STRING),
  permissions: described(NAMES_BY_KIND, 'For an installed plugin, the permissions that a person has accepted.'),
  installed: object({
    integrity: STRING,
    enabled: BOOLEAN,
    trusted: BOOLEAN,
    former_version: described(nullable('string'), 'The version to which `rollback` goes back on this node.'),
  }),
}
const DETAIL_OPTIONAL = ['error', 'process', 'installed']
const DETAIL = titled(
  'PluginDetail',
  object(
    detailFields,
    Object.keys(detailFields).filter(name => !DETAIL_OPTIONAL.includes(name))
  )
)

const PLANNED = titled(
  'PlannedPlugin',
  object({
    name: STRING,
    version: STRING,
    from_version: nullable('string'),
    kind: STRING,
    description: STRING,
    integrity: described(STRING, '`sha512-…` of its tarball.'),
    isolation: STRING,
    contributes: OBJECT,
    permissions: NAMES_BY_KIND,
    permission_change: described(object({ added: list(STRING), removed: list(STRING) }), 'The difference to what is accepted.'),
    new_permission_values: NAMES_BY_KIND,
    access: described(
      list(object({ text: STRING, is_wide: BOOLEAN, is_new: BOOLEAN })),
      'What it can do, in sentences, wide ones first. Show them before you apply the plan.'
    ),
    routes: described(list(STRING), 'Its routes with their scopes, in sentences; those without a credential first.'),
    pages: described(list(STRING), 'Its pages in the console, in sentences.'),
    checks: described(list(STRING), 'Credentials that it reads, in sentences.'),
    missing_settings: list(STRING),
    install_scripts: described(list(STRING), 'Its install scripts, which do not run.'),
    packages: list(object({ name: STRING, version: STRING, integrity: STRING })),
  })
)
const PLAN = titled(
  'PluginPlan',
  object({
    hash: described(STRING, 'Names the plan, over everything in it and the installed plugins.'),
    action: words(...ACTIONS),
    name: STRING,
    plugins: list(PLANNED),
    changes: list(object({ name: STRING, version: STRING, to: words('removed', 'enabled', 'disabled') })),
    is_empty: BOOLEAN,
    created_at: TIME,
    expires_at: TIME,
  })
)

/** Characters of Base64 for 16 MiB, and a body with them. */
const LONGEST_ARCHIVE = Math.ceil((16 * 1_048_576) / 3) * 4
const BODY_LIMIT = LONGEST_ARCHIVE + 65_536

const planBody: JsonSchema = {
  ...(object(
    {
      action: words(...ACTIONS),
      name: {
        type: 'string',
        maxLength: 214,
        pattern: '^(?!.*\\.(?:tgz|tar\\.gz)$)(?:@[a-z0-9-][a-z0-9._-]*/)?[a-z0-9-][a-z0-9._-]*$',
        patternHint: 'must be the name of a package in the registry: no path, address or link',
        description: 'The name of a package. With `archive` it can be left out.',
      },
      version: {
        type: 'string',
        maxLength: 100,
        pattern: '^[\\w.^~<>=|*+-][\\w.^~<>=|* +-]*$',
        patternHint: 'must be a version or range such as ^1.2',
        description: 'For `install`: a version or range. Default: the newest.',
      },
      archive: {
        type: 'string',
        minLength: 1,
        maxLength: LONGEST_ARCHIVE,
        pattern: '^[A-Za-z0-9+/]+={0,2}$',
        patternHint: 'must be Base64',
        description: 'For `install`: a packed package (npm pack) of at most 16 MiB, in Base64, instead of one of the registry.',
      },
    },
    ['action']
  ) as object),
  additionalProperties: false,
}

/** Routes for the plugins of the server, and for changes of them in two steps. */
export const createPluginRoutes = (plugins: PluginSet, publish: Publish): Record<string, Route> => ({
  plugins: {
    method: 'GET',
    path: PATH,
    summary: 'List the plugins with state and accounting',
    scope: 'read',
    responses: ok('The plugins by name.', object({ plugins: list(SUMMARY) })),
    handle: async (_request, ctx) => ({ body: { plugins: (await plugins.list(ctx)) as unknown as Json } }),
  },
  plugin: {
    method: 'GET',
    path: `${PATH}/:name`,
    summary: 'Read a plugin with its contributions, permissions and refusals',
    scope: 'read',
    responses: ok('The plugin.', DETAIL),
    handle: async ({ params }, ctx) => ({
      body: (await plugins.get(params.name!, ctx)) as unknown as { [member: string]: Json },
    }),
  },
  plugin_plan: {
    method: 'POST',
    path: `${PATH}/plans`,
    summary: 'Plan a change of the installed plugins, without running their code',
    scope: 'admin',
    body: planBody,
    bodyLimit: BODY_LIMIT,
    responses: { '201': { description: 'The plan, which expires after 10 minutes.', schema: PLAN } },
    async handle({ body }, ctx) {
      const plan = await plugins.plan(changeIn(body as unknown as PlanBody), ctx)
      return { status: 201, body: plan as unknown as { [member: string]: Json } }
    },
  },
  plugin_plan_apply: {
    method: 'POST',
    path: `${PATH}/plans/:hash/apply`,
    summary: 'Apply a plan in a job, exactly as it was shown',
    scope: 'admin',
    responses: {
      '202': { description: 'The job. A second request returns the same job.', schema: JOB },
      '409': {
        description:
          'The package or the installed plugins have changed since the plan: see details.changed. svc has not applied the plan.',
      },
    },
    async handle({ params }, ctx) {
      const hash = params.hash!
      const job = await plugins.apply(hash, ctx)
      publish({ type: 'plugin_plan_applied', subject: `plugins/plans/${hash}`, after: { job: job.id } }, ctx)
      return { status: 202, body: jobRecord(job) }
    },
  },
})

type PlanBody = Partial<PluginChange> & Pick<PluginChange, 'action'>

function changeIn({ action, name, version, archive }: PlanBody): PluginChange {
  if (archive === undefined && name === undefined)
    throw svcError('MISSING_FIELD', 'Missing required field: name', {
      details: { required_fields: ['action', 'name'], provided_fields: ['action'] },
      hint: 'Give the name of a package, or an archive',
    })
  if (archive !== undefined && (action !== 'install' || version !== undefined)) {
    const reason = action === 'install' ? 'cannot be used with version' : 'is only for install'
    throw svcError('INVALID_VALUE', `archive ${reason}`, { details: { field: 'archive', reason } })
  }
  return { action, name: name ?? '', ...definedOf({ version, archive }) }
}
