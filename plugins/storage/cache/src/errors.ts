import { type SvcError, svcError } from '@svc/core'

export const noStore = (plugin: string): SvcError =>
  svcError('MISSING_SERVICE', `cache.in is "store", but no plugin provides the store that ${plugin} needs`, {
    hint: 'Set cache.in to "memory", or add a store such as @svc/plugin-store-sqlite',
  })
