import type { Log, SlotView } from '@svc/core'
import type { Check, Recommend, Route, Workflows } from '@svc/core/contracts'
import { createProbes } from './probes.ts'
import { createChatRoutes } from './routes/chat.ts'
import { createConfigRoutes } from './routes/config.ts'
import { createConversationRoutes } from './routes/conversations.ts'
import { createDiscoveryRoutes } from './routes/discovery.ts'
import { createHealthRoutes } from './routes/health.ts'
import { createOpenApiRoutes } from './routes/openapi.ts'
import { createRecommendRoutes } from './routes/recommend.ts'
import { createRunRoutes } from './routes/runs.ts'
import { createStatusRoutes } from './routes/status.ts'
import { createWorkflowRoutes } from './routes/workflows.ts'
import { createRunStreams } from './run-frames.ts'

/** What the routes stand on. Without workflows or recommendations there are no routes for them. */
type RouteParts = Parameters<typeof createChatRoutes>[0] &
  Parameters<typeof createConversationRoutes>[0] &
  Parameters<typeof createConfigRoutes>[0] &
  Parameters<typeof createDiscoveryRoutes>[0] &
  Omit<Parameters<typeof createHealthRoutes>[0] & Parameters<typeof createStatusRoutes>[0], 'probes'> &
  Parameters<typeof createOpenApiRoutes>[0] & {
    readonly checks: SlotView<Check>
    readonly log: Log
    readonly workflows?: Workflows | undefined
    readonly recommend?: Recommend | undefined
  }

/** Streams of runs end before the server waits for what is open. */
export const LEAVING = -100

/** All routes of the API by name; `leave` ends what would stay open for as long as a run does. */
export function createRoutes(parts: RouteParts): { readonly routes: Record<string, Route>; readonly leave: () => void } {
  const { workflows, recommend } = parts
  const probes = createProbes(parts.checks, parts.log)
  const streams = workflows && createRunStreams(workflows)
  const routes = {
    ...createChatRoutes(parts),
    ...createConversationRoutes(parts),
    ...createConfigRoutes(parts),
    ...createDiscoveryRoutes(parts),
    ...createHealthRoutes({ ...parts, probes }),
    ...createStatusRoutes({ ...parts, probes }),
    ...createOpenApiRoutes(parts),
    ...(recommend ? createRecommendRoutes(recommend) : {}),
    ...(workflows ? createWorkflowRoutes(workflows) : {}),
    ...(workflows && streams ? createRunRoutes({ workflows, streams }) : {}),
  }
  return { routes, leave: () => streams?.leave() }
}
