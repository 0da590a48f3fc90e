import { Socket } from 'node:net'
import { ipcTransport, openChannel, socketTransport } from '@svc/runtime'
import { Clock, type ClockLog, Watch } from './clock.ts'
import { createClock } from './create-clock.ts'

// A clock in a process of its own: over IPC, or over the pipe at descriptor 3.
const log: ClockLog = { produced: 0, finished: [], aborted: [] }
const transport = process.send ? ipcTransport(process) : socketTransport(new Socket({ fd: 3 }))
const channel = openChannel(transport, { name: 'parent', self: 'clocks' })
channel.offer('clock', Clock, createClock(log))
channel.offer('watch', Watch, { look: async () => log })
