export type { Arguments, CallAnswer, McpChange, McpClient, McpStatus, StepOptions, ToolList, Waiting } from './client-types.ts'
export { type BridgedTool, type BridgeOptions, bridgeTool } from './bridge-tool.ts'
export { createMcpClient } from './client.ts'
export type { OAuthOptions, Person, TokenStorage } from './oauth/options.ts'
export { type LoginOptions, loginMcp } from './oauth/login.ts'
export { type Loopback, openLoopback } from './oauth/loopback.ts'
export { createMcpRegistry, type McpRegistry, type Registered, type RegistryEntry } from './registry.ts'
export { createMcpSandbox, type McpSandbox, type McpSandboxConfig } from './sandbox.ts'
export { fromMcpSchema, toMcpSchema, type ToolSchema } from '@svc/mcp-protocol'
export {
  type Backoff,
  type Clock,
  type HttpOptions,
  type KnownEra,
  type Launch,
  LIMITS,
  type McpClientOptions,
  type McpLimits,
  type ReconnectPolicy,
  type StdioOptions,
} from './options.ts'
