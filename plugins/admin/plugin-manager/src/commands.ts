import { Build } from './commands/build.ts'
import { PluginsDev } from './commands/dev.ts'
import { PluginsDisable, PluginsEnable } from './commands/switch.ts'
import { Doctor } from './commands/doctor.ts'
import { PluginsDoctor } from './commands/plugins-doctor.ts'
import { PluginsInfo } from './commands/info.ts'
import { PluginsInstall } from './commands/install.ts'
import { PluginsLink } from './commands/link.ts'
import { PluginsLint } from './commands/lint.ts'
import { PluginsList } from './commands/list.ts'
import { PluginsNew } from './commands/new.ts'
import { PluginsPack } from './commands/pack.ts'
import { Plugins } from './commands/plugins.ts'
import { PluginsPublish } from './commands/publish.ts'
import { PluginsSearch } from './commands/search.ts'
import { PluginsTest } from './commands/test.ts'
import { PluginsUninstall } from './commands/uninstall.ts'
import { PluginsUpdate } from './commands/update.ts'

export const COMMANDS = {
  build: Build,
  doctor: Doctor,
  plugins: Plugins,
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
  'plugins:uninstall': PluginsUninstall,
  'plugins:update': PluginsUpdate,
}
