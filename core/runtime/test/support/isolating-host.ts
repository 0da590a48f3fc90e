import { definePlugin, startHost, systemContext } from '@svc/core'
import { isolate } from '@svc/runtime/isolation'
import { Bells } from './bells.ts'
import { Clock } from './clock.ts'
import { createClock } from './create-clock.ts'

// A host in a process of its own, so that a test can kill it: prints the pid of its isolated plugin, and at SIGINT whether that answers.
const bells = await isolate({ name: 'bells', module: new URL('./isolated-plugin.ts', import.meta.url).href })
const clock = definePlugin({ provides: Clock, setup: () => createClock() })
const host = await startHost({
  plugins: [
    { use: clock, name: 'clocks' },
    { use: bells, name: 'bells' },
  ],
  config: {},
})
const askPid = () => host.service(Bells).pid(systemContext(AbortSignal.timeout(10_000)))
process.on('SIGINT', () => void askPid().then(pid => process.stdout.write(`the plugin answers: ${pid}`)))
process.stdout.write(String(await askPid()))
