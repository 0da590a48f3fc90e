import { join, resolve } from 'node:path'
import { svcHome } from '@svc/core'

/** The store's file, as the section `store` and the svc home have it. */
export const fileOf = ({ path }: { readonly path?: string }): string => resolve(path ?? join(svcHome(), 'svc.db'))
