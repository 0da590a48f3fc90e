import { Args, BaseCommand, Flags, HEADER_FLAG, secondsOf } from '@svc/cli/command'
import { oclifFlags, optionsOf, settingFlagNames } from '@svc/cli/program'

// The commands that ask a running server, check what one needs, or build one.

const INTERVAL_S = 2

/** The server to ask; without these flags, the one of this svc home. */
const serverFlags = {
  url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
  port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
  ...HEADER_FLAG,
}

export class PluginsTop extends BaseCommand {
  static override summary = 'Show the usage of each plugin: calls, errors, time, memory, CPU'
  static override description =
    'Asks the server of this svc home, or the one that --url or --port names, for its plugins. Shows the sums over all workers: calls, errors and time of each plugin. For a plugin in its own process it also shows memory, processor time, restarts and refused accesses. On a terminal it refreshes the table until Ctrl-C; otherwise, and with --once or --json, it prints the table once. On a narrow terminal it shortens names, then leaves out TIME, /S, CPU, MEMORY, BUSY and CALLS in this order. To a server of another home or machine it sends SVC_API_KEY (an API key or a token of `svc tokens create`), the answer of SVC_CREDENTIAL_HELPER, and --header.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --once --sort memory',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override flags = {
    sort: Flags.option({
      summary: 'Order of the rows',
      options: ['time', 'calls', 'errors', 'memory', 'cpu'] as const,
      default: 'time',
    })(),
    once: Flags.boolean({ summary: 'Print the table once' }),
    interval: Flags.custom<number>({
      summary: 'Seconds between two refreshes',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    ...serverFlags,
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(PluginsTop)
    const { top } = await import('./server/top.ts')
    return top({ ...flags, interval: flags.interval ?? INTERVAL_S })
  }
}

export class Status extends BaseCommand {
  static override summary = 'Show server status: requests, latency, providers, plugins'
  static override description =
    'Asks the server of this svc home, or the one that --url or --port names. Shows its health, workers, requests, latency, providers, plugins, store and cache. Estimates the latency from the histogram of /metrics, without the requests to /health, /metrics and /api/v1/status. With --watch it refreshes until Ctrl-C: one screen on a terminal, otherwise one line each time. With --live it asks only /health/live, without a credential, as the health check of a container does. With --cluster it shows the nodes of the cluster, and exits with 1 when a worker has not answered. Exits with 1 when the server cannot be reached, is unhealthy or does not publish its status. Needs no credential for the server of this svc home, and no limit of clients counts it. To a server of another home or machine it sends SVC_API_KEY (an API key or a token of `svc tokens create`), the answer of SVC_CREDENTIAL_HELPER, and --header.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --watch',
    '<%= config.bin %> <%= command.id %> --cluster',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
    '<%= config.bin %> <%= command.id %> --url https://svc.example.com',
  ]
  static override flags = {
    watch: Flags.boolean({ char: 'w', summary: 'Refresh until Ctrl-C' }),
    interval: Flags.custom<number>({
      summary: 'Seconds between two refreshes',
      helpValue: '<seconds>',
      dependsOn: ['watch'],
      parse: async word => secondsOf(word),
    })(),
    ...serverFlags,
    cluster: Flags.boolean({
      summary: 'Show all nodes of the cluster: state, version, roles and load of their workers, and which did not answer',
      exclusive: ['live'],
      // oclif's usage shows a flag once: --watch stands beside --interval
      relationships: [{ type: 'none', flags: ['watch'] }],
    }),
    live: Flags.boolean({
      summary: 'Check only whether the server answers: exits with 0 or 1',
      relationships: [{ type: 'none', flags: ['watch', 'json'] }],
    }),
    json: Flags.boolean({ summary: 'Print one JSON object; with --watch, one per line' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(Status)
    if (flags.cluster) return (await import('./server/cluster-status.ts')).clusterStatus(flags)
    const { status } = await import('./server/status.ts')
    return status({ ...flags, interval: flags.interval ?? INTERVAL_S })
  }
}

export class Build extends BaseCommand {
  static override summary = 'Write a folder with svc and exactly the configured plugins'
  static override description =
    'Writes a folder that holds svc, exactly the configured and installed plugins, and a Containerfile. `npm start` in that folder starts the server. The folder needs Node.js 24 and no network. Two builds of the same input are identical byte for byte. A build contains no environment variables.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./out',
    '<%= config.bin %> <%= command.id %> ./out --config ./staging.yaml --json',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder to write, new or empty', required: true, ignoreStdin: true }),
  }
  static override flags = {
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>' }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Build)
    const { buildFolder } = await import('./build/build.ts')
    return buildFolder({ folder: args.folder, ...flags })
  }
}

export class Doctor extends BaseCommand {
  static override summary = 'Check what svc needs: home, configuration, store, providers, port'
  static override description =
    'Checks Node, the svc home, the configuration, the profiles, the store, the providers, authentication, the port, the certificate and the sandbox as `svc serve` with the same options would find them, and suggests a fix for each problem. Starts the configured plugins in this process, except those that listen; a server may run at the same time. Exits with 1 when a check fails, and with 0 when checks only warn.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = { ...oclifFlags(settingFlagNames), json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(Doctor)
    const { doctor } = await import('./doctor/doctor.ts')
    return doctor(optionsOf(flags), flags.json)
  }
}
