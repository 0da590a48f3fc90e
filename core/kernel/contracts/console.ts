import { type ConsolePlace, defineSlot } from '@svc/core'
import type { Route } from './http.ts'

/**
 * A page of a plugin in the console: a view, which is data that the console draws, or an app, which the browser runs in a frame with an
 * origin of its own. Neither reaches the console or the network. Their requests, which `permissions.console` of the manifest lists, are
 * sent by the console with the rights of the person there.
 */
export interface ConsolePage {
  /** The name in the navigation of the console, or of its panel or tab. */
  readonly title: string
  /** Callers without this scope do not see the page. */
  readonly scope: NonNullable<Route['scope']>
  /** The file of an app in the folder `console` of the package. Default: `index.html`. Other files of that folder can be parts of it. */
  readonly file?: string
  /** The file of a view in that folder: `notes.json`. */
  readonly view?: string
  /**
   * Where it is shown: `page` in the navigation (default), `overview` as a panel on the overview, `run` and `conversation` as a tab of
   * each run or conversation, whose id it gets, `tool_result` in place of the results of `tools`, which it gets.
   */
  readonly place?: ConsolePlace
  /** For the place `tool_result`: the tools whose results it shows. Each is a tool of the same plugin. */
  readonly tools?: readonly string[]
}

/** Pages of the console by a name that the plugin chooses. The manifest declares the members of each. */
export const ConsolePages = defineSlot<ConsolePage>('console_pages', {
  api: 1,
  methods: {},
  declared: ['title', 'scope', 'file', 'view', 'place', 'tools'],
})
