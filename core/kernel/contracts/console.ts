import { defineSlot } from '@svc/core'
import type { Route } from './http.ts'

/**
 * A page of a plugin in the console. The browser runs it in a frame with an origin of its own: it reaches neither the console nor the
 * network. It sends the requests that `permissions.console` of its manifest lists through the console, with the rights of the person
 * at the console.
 */
export interface ConsolePage {
  /** The name in the navigation of the console. */
  readonly title: string
  /** Callers without this scope do not see the page. */
  readonly scope: NonNullable<Route['scope']>
  /** Its file in the folder `console` of the package. Default: `index.html`. Other files of that folder can be parts of the page. */
  readonly file?: string
}

/** Pages of the console by a name that the plugin chooses. The manifest declares title, scope and file of each. */
export const ConsolePages = defineSlot<ConsolePage>('console_pages', {
  api: 1,
  methods: {},
  declared: ['title', 'scope', 'file'],
})
