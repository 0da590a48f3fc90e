import { PluginsDev, PluginsLint, PluginsNew, PluginsPublish, PluginsTest } from './commands/author.ts'
import {
  PluginsAccept,
  PluginsDisable,
  PluginsEnable,
  PluginsInstall,
  PluginsLink,
  PluginsPack,
  PluginsSearch,
  PluginsUninstall,
  PluginsRollback,
  PluginsUpdate,
} from './commands/change.ts'
import { ConfigCheck, ConfigSchema, ConfigShow } from './commands/config.ts'
import { Plugins, PluginsDoctor, PluginsInfo, PluginsList } from './commands/report.ts'
import { Build, Doctor, PluginsTop, Status } from './commands/server.ts'

export const COMMANDS = {
  build: Build,
  'config:check': ConfigCheck,
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  doctor: Doctor,
  plugins: Plugins,
  'plugins:accept': PluginsAccept,
  'plugins:dev': PluginsDev,
  'plugins:disable': PluginsDisable,
  'plugins:doctor': PluginsDoctor,
  'plugins:enable': PluginsEnable,
  'plugins:info': PluginsInfo,
  'plugins:install': PluginsInstall,
  'plugins:link': PluginsLink,
  'plugins:lint': PluginsLint,
  'plugins:list': PluginsList,
  'plugins:new': PluginsNew,
  'plugins:pack': PluginsPack,
  'plugins:publish': PluginsPublish,
  'plugins:search': PluginsSearch,
  'plugins:test': PluginsTest,
  'plugins:top': PluginsTop,
  'plugins:uninstall': PluginsUninstall,
  'plugins:rollback': PluginsRollback,
  'plugins:update': PluginsUpdate,
  status: Status,
}
