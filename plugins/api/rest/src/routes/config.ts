import type { JsonSchema, SlotView } from '@svc/core'
import type { Effective, Mode, Route, Selection } from '@svc/core/contracts'
import { BOOLEAN, list, nullable, object, ok, STRING, text, words } from '@svc/api-types'
import { effectiveWire, profileWire } from '../records.ts'

const source = words('override', 'profile', 'default')
const effective = object({
  profile: STRING,
  provider: STRING,
  model: STRING,
  mode: STRING,
  override: { oneOf: [object({ provider: STRING, model: STRING }), { type: 'null' }] },
  profiles: list(STRING),
  modes: list(STRING),
  source: object({ provider: source, model: source }),
})
const profile = object({
  name: STRING,
  provider: nullable('string'),
  model: nullable('string'),
  description: nullable('string'),
  temperature: nullable('number'),
  max_tokens: nullable('integer'),
  is_default: BOOLEAN,
  active: BOOLEAN,
})

const read = (path: string, summary: string, schema: JsonSchema, handle: Route['handle']): Route => ({
  method: 'GET',
  path,
  summary,
  scope: 'read',
  responses: ok('The current values.', schema),
  ...(handle ? { handle } : {}),
})

/** Creates a route that changes these fields and returns them with the new effective configuration. */
function switchRoute<F extends string>(
  path: string,
  summary: string,
  fields: readonly F[],
  change: (values: Record<F, string>, ctx: Parameters<NonNullable<Route['handle']>>[1]) => Promise<Effective>
): Route {
  const echoed = Object.fromEntries(fields.map(field => [field, STRING]))
  return {
    method: 'POST',
    path,
    summary,
    scope: 'admin',
    body: object(Object.fromEntries(fields.map(field => [field, text()]))),
    responses: ok('The new effective configuration.', object({ success: BOOLEAN, ...echoed, effective })),
    async handle({ body }, ctx) {
      const values = body as Record<F, string>
      const now = await change(values, ctx)
      return {
        body: {
          success: true,
          ...Object.fromEntries(fields.map(field => [field, values[field]])),
          effective: effectiveWire(now),
        },
      }
    },
  }
}

/** Routes for the session of the server: profile, override, mode. */
export function createConfigRoutes({ selection, modes }: { selection: Selection; modes: SlotView<Mode> }): Record<string, Route> {
  return {
    config_effective: read('/api/v1/config/effective', 'Read the effective configuration', effective, async (_request, ctx) => ({
      body: effectiveWire(await selection.effective(ctx)),
    })),
    profiles: read(
      '/api/v1/profiles',
      'List profiles',
      object({ profiles: list(profile), active: STRING }),
      async (_request, ctx) => {
        const { profiles, active, default: standard } = await selection.profiles(ctx)
        return { body: { profiles: profiles.map(item => profileWire(item, active, standard)), active } }
      }
    ),
    modes: read(
      '/api/v1/modes',
      'List modes',
      object({ modes: list(object({ name: STRING, description: STRING })), active: STRING }),
      async (_request, ctx) => {
        const { mode } = await selection.effective(ctx)
        return { body: { modes: modes.entries().map(([name, { description }]) => ({ name, description })), active: mode } }
      }
    ),
    profile_switch: switchRoute(
      '/api/v1/profile/switch',
      'Switch the profile; clears the override',
      ['profile'],
      ({ profile }, ctx) => selection.switchProfile(profile, ctx)
    ),
    model_switch: switchRoute(
      '/api/v1/model/switch',
      'Override provider and model',
      ['provider', 'model'],
      ({ provider, model }, ctx) => selection.switchModel(provider, model, ctx)
    ),
    mode_switch: switchRoute('/api/v1/mode/switch', 'Switch the mode', ['mode'], ({ mode }, ctx) =>
      selection.switchMode(mode, ctx)
    ),
  }
}
