import type { Command } from '@svc/core/contracts'
import { switchServer } from './switch.ts'

/** `svc mcp enable <name>`: on again; also ends a quarantine. */
const enable: Command = call => switchServer(call, 'enable')

export default enable
