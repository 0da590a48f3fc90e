import type { Route } from '@svc/core/contracts'
import { createChatRoutes } from './routes/chat.ts'
import { createConfigRoutes } from './routes/config.ts'
import { createConversationRoutes } from './routes/conversations.ts'
import { createDiscoveryRoutes } from './routes/discovery.ts'
import { createHealthRoutes } from './routes/health.ts'
import { createOpenApiRoutes } from './routes/openapi.ts'
import { createStatusRoutes } from './routes/status.ts'

/** What the routes stand on. */
type RouteParts = Parameters<typeof createChatRoutes>[0] &
  Parameters<typeof createConversationRoutes>[0] &
  Parameters<typeof createConfigRoutes>[0] &
  Parameters<typeof createDiscoveryRoutes>[0] &
  Parameters<typeof createHealthRoutes>[0] &
  Parameters<typeof createStatusRoutes>[0] &
  Parameters<typeof createOpenApiRoutes>[0]

/** All routes of the API by name. */
export const createRoutes = (parts: RouteParts): Record<string, Route> => ({
  ...createChatRoutes(parts),
  ...createConversationRoutes(parts),
  ...createConfigRoutes(parts),
  ...createDiscoveryRoutes(parts),
  ...createHealthRoutes(parts),
  ...createStatusRoutes(parts),
  ...createOpenApiRoutes(parts),
})
