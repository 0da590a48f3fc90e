import type { Command } from '@oclif/core'
import { Build } from './commands/build.ts'
import { ConfigCheck } from './commands/config-check.ts'
import { ConfigSchema } from './commands/config-schema.ts'
import { ConfigShow } from './commands/config-show.ts'
import { Doctor } from './commands/doctor.ts'
import { McpServe } from './commands/mcp-serve.ts'
import { Plugins } from './commands/plugins.ts'
import { PluginsDev } from './commands/plugins-dev.ts'
import { PluginsLint } from './commands/plugins-lint.ts'
import { PluginsNew } from './commands/plugins-new.ts'
import { PluginsPublish } from './commands/plugins-publish.ts'
import { PluginsTest } from './commands/plugins-test.ts'
import { PluginsDisable } from './commands/plugins-disable.ts'
import { PluginsDoctor } from './commands/plugins-doctor.ts'
import { PluginsEnable } from './commands/plugins-enable.ts'
import { PluginsInfo } from './commands/plugins-info.ts'
import { PluginsInstall } from './commands/plugins-install.ts'
import { PluginsLink } from './commands/plugins-link.ts'
import { PluginsList } from './commands/plugins-list.ts'
import { PluginsPack } from './commands/plugins-pack.ts'
import { PluginsSearch } from './commands/plugins-search.ts'
import { PluginsTop } from './commands/plugins-top.ts'
import { PluginsUninstall } from './commands/plugins-uninstall.ts'
import { PluginsUpdate } from './commands/plugins-update.ts'
import { Reload } from './commands/reload.ts'
import { Serve } from './commands/serve.ts'
import { Status } from './commands/status.ts'

/** svc's own commands, as oclif takes them. */
export const COMMANDS: Readonly<Record<string, Command.Class>> = {
  build: Build,
  'config:check': ConfigCheck,
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  doctor: Doctor,
  'mcp:serve': McpServe,
  plugins: Plugins,
  'plugins:dev': PluginsDev,
  'plugins:lint': PluginsLint,
  'plugins:new': PluginsNew,
  'plugins:publish': PluginsPublish,
  'plugins:test': PluginsTest,
  'plugins:disable': PluginsDisable,
  'plugins:doctor': PluginsDoctor,
  'plugins:enable': PluginsEnable,
  'plugins:info': PluginsInfo,
  'plugins:install': PluginsInstall,
  'plugins:link': PluginsLink,
  'plugins:list': PluginsList,
  'plugins:pack': PluginsPack,
  'plugins:search': PluginsSearch,
  'plugins:top': PluginsTop,
  'plugins:uninstall': PluginsUninstall,
  'plugins:update': PluginsUpdate,
  reload: Reload,
  serve: Serve,
  status: Status,
}
