// Speaks to a gateway with TLS and a token, as programs in Node.js do: prints what it is told, as JSON.
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'

const [address, authority, token, name, protos] = process.argv.slice(2)
const files = ['connect/v1/broker_cluster_service', 'event/v1/watch_service'].map((file) => `keelman/api/${file}.proto`)
const options = { includeDirs: [protos], keepCase: true, longs: String, enums: String, oneofs: true }
const api = grpc.loadPackageDefinition(loader.loadSync(files, options)).keelman.api
const trusting = grpc.credentials.createSsl(readFileSync(authority))
const bearer = grpc.credentials.createFromMetadataGenerator((_, done) => {
  const metadata = new grpc.Metadata()
  metadata.set('authorization', `Bearer ${token}`)
  done(null, metadata)
})
const known = grpc.credentials.combineChannelCredentials(trusting, bearer)
const deadline = Date.now() + 60000

function called (service, method, request, credentials = known) {
  const client = new service(address, credentials)
  return promisify(client[method].bind(client))(request, new grpc.Metadata(), { deadline })
}

async function refusal (answer) {
  try {
    await answer
    return null
  } catch (error) {
    // google.rpc.Status with an ErrorInfo, whose reason is in capitals
    const details = error.metadata.get('grpc-status-details-bin')[0]?.toString('latin1') ?? ''
    return [grpc.status[error.code], details.match(/[A-Z]+(_[A-Z]+)+/)?.[0] ?? '']
  }
}

const clusters = api.connect.v1.BrokerClusterService
const unknown = await refusal(called(clusters, 'ListBrokerClusters', {}, trusting))
const watch = new api.event.v1.WatchService(address, known).Watch({ nouns: ['broker_cluster'], name })
const answers = watch[Symbol.asyncIterator]()
await answers.next() // the snapshot, which is empty
const spec = { external: { bootstrap_servers: '127.0.0.1:1' } }
const made = (await called(clusters, 'CreateBrokerCluster', { name, spec })).broker_cluster
const taken = await refusal(called(clusters, 'CreateBrokerCluster', { name, spec }))
let change = (await answers.next()).value
while (change.events.length === 0) change = (await answers.next()).value
const age = Date.now() / 1000 - Number(made.create_time.seconds)
console.log(JSON.stringify({ made: made.name, age, unknown, taken, seen: change.events[0].name }))
process.exit(0)
