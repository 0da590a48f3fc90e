import { McpDisable, McpEnable, McpList, McpLogin, McpTest } from './commands/connections.ts'
import { McpAdd, McpImport, McpRemove } from './commands/entries.ts'
import { McpApprove, McpTools } from './commands/tools.ts'

export const COMMANDS = {
  'mcp:list': McpList,
  'mcp:add': McpAdd,
  'mcp:remove': McpRemove,
  'mcp:test': McpTest,
  'mcp:tools': McpTools,
  'mcp:approve': McpApprove,
  'mcp:enable': McpEnable,
  'mcp:disable': McpDisable,
  'mcp:import': McpImport,
  'mcp:login': McpLogin,
}
