import type { Use } from '@svc/core'
import { completing } from './completion.ts'
import { prompting } from './prompt-handlers.ts'
import type { Published } from './published.ts'
import { reading } from './resource-handlers.ts'
import type { Sdk, Server } from './sdk.ts'
import { calling } from './tool-handlers.ts'

/** The SDK's server over what is published, with handlers of ours; nothing in it is made a tool. `own` is whose requests they are, where the transport carries none. */
export function createProtocolServer(sdk: Sdk, published: Published, own?: Use): Server {
  const { info, resources, prompts } = published
  // McpServer, which it is deprecated for, checks and writes each tool anew for each request
  const server = new sdk.Server(info, {
    capabilities: {
      tools: { listChanged: true },
      logging: {},
      ...(resources && { resources: { listChanged: true, subscribe: true } }),
      ...(prompts && { prompts: { listChanged: true } }),
      ...(resources && prompts && { completions: {} }),
    },
  })
  server.onerror = error => published.log.debug({ err: error }, 'a client of the tool protocol did something wrong, or left')
  calling(server, sdk, published, own)
  if (resources) reading(server, sdk, resources, published, own)
  if (prompts) prompting(server, sdk, prompts, published, own)
  if (resources && prompts) completing(server, sdk, { resources, prompts }, own)
  return server
}
