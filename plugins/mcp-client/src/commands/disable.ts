import type { Command } from '@svc/core/contracts'
import { switchServer } from './switch.ts'

/** `svc mcp disable <name>`: off, until it is enabled. */
const disable: Command = call => switchServer(call, 'disable')

export default disable
