import { definePlugin, importFrom, schema } from '@svc/core'
import { ProtectedPaths, Providers } from '@svc/core/contracts'
import { type AiSdkConfig, CONFIG } from './config.ts'
import { packageFolders, packagePlaces } from './places.ts'

export default definePlugin({
  instances: 'providers',
  type: 'ai-sdk',
  config: schema<AiSdkConfig>(CONFIG),
  // The work is imported by those who have such an entry: the others pay for nothing.
  async check(config, name = 'ai-sdk') {
    const { checkConfig } = await import('./check.ts')
    return checkConfig(name, config, packagePlaces())
  },
  async setup({ instance: name = 'ai-sdk', config, log, signal, ...scope }) {
    const { openProvider } = await import('./open.ts')
    const opened = await openProvider({ name, config, log, signal, packages: { places: packagePlaces(), importFrom } })
    scope.defer(opened.close)
    scope.add(Providers, name, opened.provider)
    if (config.package !== undefined)
      scope.add(ProtectedPaths, name, { paths: packageFolders(config.package), owner: 'the packages that svc imports' })
  },
})
